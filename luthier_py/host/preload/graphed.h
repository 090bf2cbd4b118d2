/* What graphed.c and changed.c share: executables of the program, and their shadows. */
#ifndef LUTHIER_GRAPHED_H
#define LUTHIER_GRAPHED_H

#include "preloaded.h"

enum { NODE_LAUNCH = 0, NODE_GRAPH = 4, NODE_EMPTY = 5 };

/* `original`: the program's kernel, while its clone is in the node. `explained`: the worker prints why not. */
struct graph_launch { struct node *node; struct copy *copy; void *original; struct launch_shape shape; bool off, explained; };

/* Of a program; `shadow` is NULL where all of it runs as it is. */
struct executable {
    struct executable *next;
    struct graph *graph, *shadow;
    unsigned long long flags; /* of its instantiation */
    struct graph_launch *launches;
    size_t count;
};

/* All with the lock held, but the first. */
void graphs_lock(void);
void graphs_unlock(void);
struct executable *graphs_find(const struct graph *graph);
bool launches_list(struct executable *to, struct graph *graph); /* of the graph and of those that are nodes of it */
bool clone_put(struct graph_launch *launch); /* the clone instead of the program's kernel in a node, until `clone_restore` */
void clone_restore(const struct graph_launch *launch);
void launch_set(struct executable *executable, struct graph_launch *launch, struct launch_params params);
void shadow_prepare(struct executable *executable, struct graph *graph);
void shadow_drop(struct executable *executable);

#endif
