/* Graphs: nodes, each with what must come before it. An executable is a graph whose nodes are in such an order. */
#ifndef LUTHIER_GRAPH_H
#define LUTHIER_GRAPH_H

#include "luthier.h"

enum node_type { /* hipGraphNodeType */
    NODE_LAUNCH, NODE_COPY, NODE_FILL, NODE_CALL, NODE_GRAPH, NODE_EMPTY, NODE_WAIT, NODE_RECORD
};

struct node {
    enum node_type type;
    struct graph *graph;
    struct nodes before;
    const struct node *origin;  /* the node that it is a copy of */
    struct operation operation; /* of the first four types */
    void **args;                /* of a launch: where in its kernarg segment, as hipGraphKernelNodeGetParams gives them */
    struct graph *child;
    event_t event;
    bool off;
    struct node *copy; /* while its graph is copied */
};

struct graph {
    struct nodes nodes;
    stream_t origin;         /* the stream that it is captured from */
    struct stream *captured; /* all streams that are captured into it */
    unsigned long long flags;
};

/* nodes.c */
/* A new node after `count` others; what `operation` holds becomes the node's, also when this fails. */
hipError_t graph_add(struct graph *graph, enum node_type type, const struct operation *operation,
                     struct node *const *before, size_t count, struct node **node);
void node_set(struct node *node, const struct operation *operation); /* takes what it holds */
/* `kind`: an executable has its nodes in an order that their edges allow. */
hipError_t graph_copy(struct graph **copy, const struct graph *graph, enum handle_kind kind);
void graph_destroy(struct graph *graph);
struct node *node_in(const struct graph *copy, const struct node *origin); /* the copy of that node */

#endif
