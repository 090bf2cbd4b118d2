/* Graphs: nodes with edges between them, and what each kind of node does. An executable is a copy of a graph whose nodes
 * are in an order that the edges allow. Programs have no handles of an executable's nodes: they name them by those that
 * they were copied from, whose number, never used again, is `origin`.
 */
#ifndef LUTHIER_GRAPH_H
#define LUTHIER_GRAPH_H

#include <stdio.h>

#include "transfers.h"

enum node_type { /* hipGraphNodeType */
    NODE_LAUNCH, NODE_COPY, NODE_FILL, NODE_CALL, NODE_GRAPH, NODE_EMPTY, NODE_WAIT, NODE_RECORD, NODE_SIGNAL_SEMAPHORES,
    NODE_WAIT_SEMAPHORES, NODE_ALLOCATE, NODE_FREE, NODE_BATCH = 14, NODE_TYPES
};
enum { FLAG_AUTO_FREE = 1, FLAG_UPLOAD = 2, FLAG_DEVICE_LAUNCH = 4, FLAG_NODE_PRIORITY = 8 }; /* hipGraphInstantiateFlags */

/* Types of the ABI. */
union attribute_value { /* hipLaunchAttributeValue */
    char pad[64];
    struct { void *base; int hit_property; float hit_ratio; int miss_property; size_t bytes; } window;
    int cooperative, priority;
};
struct allocate_params { /* hipMemAllocNodeParams */
    struct { int allocation_type, handle_types, location_type, device; char rest[72]; } pool;
    const void *access; size_t access_count, bytes; void *address;
};
struct semaphore_params { void **semaphores; const void *params; unsigned count; };
struct batch_params { void *context; unsigned count; struct memory_operation *operations; unsigned flags; };

struct reservation; /* node_memory.c: an address that graphs allocate */

/* What a node does: its parameters as they were set, and what they were made to. */
struct content {
    struct operation operation; /* of launches, copies, fills and calls */
    union {
        struct {
            void **args, *extra[5]; /* as hipGraphKernelNodeGetParams gives them: they point into the kernarg segment */
            size_t buffer_bytes;
            bool in_buffer;
            int attribute;          /* the one that was set, or 0 */
            union attribute_value value;
        } launch;
        struct { struct copy3d params; struct driver_copy driver; } copy;
        struct fill_params fill;
        struct graph *child;
        event_t event;
        struct { struct allocate_params params; struct reservation *memory; } allocate;
        struct { void *address; struct reservation *memory; } free;
        struct semaphore_params semaphores;
        struct batch_params batch; /* with its own operations */
    };
};

struct node {
    uint64_t id, origin;         /* origin: of the node that it is a copy of */
    const struct node_kind *kind;
    struct graph *graph;
    struct nodes before, after;
    struct content content;
    bool off;
    unsigned long long recorded; /* the capture that made it, or 0 */
    struct node *copy;           /* while its graph is copied */
    size_t left;                 /* while its graph is put in order: how many before it are not yet there */
};

struct holding { struct user_object *object; unsigned count; };

struct graph {
    uint64_t id, origin;
    struct nodes nodes;
    struct holding *holdings;
    size_t holding_count;
    bool ready, owned;           /* an executable, or part of one; the child of a node */
    unsigned long long flags;    /* of an executable */
};

/* One kind of nodes. What is NULL is not needed. */
struct node_kind {
    enum node_type type;
    const char *label, *shape;
    bool can_be_off;
    size_t params_at; /* in hipGraphNodeParams, after its head */
    /* From hipGraphNodeParams; NULL: hipGraphAddNode does not know such nodes. `params` may get an address. */
    hipError_t (*prepare)(void *params, struct content *content);
    hipError_t (*copy)(struct content *to, const struct content *from, bool ready); /* else as it is */
    void (*discard)(struct content *content);
    void (*keep)(struct content *content, const struct content *old); /* what stays when a node's parameters are set */
    hipError_t (*fits)(const struct content *old, const struct content *other); /* may it take its place in an executable? */
    hipError_t (*carry_out)(const struct node *node, struct stream *stream);
    void (*describe)(FILE *out, const struct content *content, unsigned flags); /* for hipGraphDebugDotPrint */
};

/* Of each kind, where it is written; by their types graphs.c has them. */
extern const struct node_kind LAUNCH_KIND, COPY_KIND, FILL_KIND, CALL_KIND, GRAPH_KIND, EMPTY_KIND, WAIT_KIND, RECORD_KIND,
    SIGNAL_KIND, WAIT_SEMAPHORES_KIND, ALLOCATE_KIND, FREE_KIND, BATCH_KIND;

/* nodes.c: graphs as data. */
bool nodes_have(const struct nodes *nodes, const struct node *node);
bool nodes_are_of(struct node *const *nodes, size_t count, const struct graph *graph); /* alive, and each only once */
struct graph *graph_new(bool ready);
void graph_destroy(struct graph *graph);
bool graph_order(const struct graph *graph, struct nodes *ordered); /* false: a circle, or no memory */
hipError_t graph_copy(struct graph **copy, const struct graph *graph, bool ready);
hipError_t executable_put(const struct graph *executable, struct stream *stream);
hipError_t node_put_operation(const struct node *node, struct stream *stream); /* what most kinds of nodes do */
struct node *node_in(const struct graph *copy, const struct node *origin); /* the copy of that node, or NULL */
hipError_t nodes_link(struct node *from, struct node *to);
bool nodes_unlink(struct node *from, struct node *to);
void node_destroy(struct node *node);
void content_discard(const struct node_kind *kind, struct content *content);
/* A new node after `count` others; what `content` holds becomes the node's, also when this fails. */
hipError_t graph_add(struct graph *graph, const struct node_kind *kind, struct content *content, struct node *const *before,
                     size_t count, struct node **node);
/* The same on a program's call: `error` is of what was prepared, `before` unchecked. */
hipError_t node_add(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                    const struct node_kind *kind, hipError_t error, struct content *content);
/* Other content for a node of that kind, or for its copy in an executable if it fits there. */
hipError_t node_set(struct node *node, const struct node_kind *kind, hipError_t error, struct content *content);
hipError_t exec_set(struct graph *executable, struct node *node, const struct node_kind *kind, hipError_t error,
                    struct content *content);
static inline bool is_of(const struct node *node, enum node_type type) { return node->kind->type == type; }

/* node_launch.c, node_copy.c, node_fill.c: of nodes that are captured. */
void launch_captured(struct content *content);
void copy_captured(struct content *content);
void fill_captured(struct content *content);

/* node_memory.c */
bool graph_has_memory(const struct graph *graph);
hipError_t memory_nodes_start(const struct graph *executable); /* before a launch: all that it allocates must be free */
hipError_t allocation_prepare(struct allocate_params *params, struct content *content);
hipError_t release_prepare(void *address, struct content *content);
hipError_t memory_instantiated(const struct graph *executable); /* once at a time */
void memory_ended(const struct graph *executable);

/* captures.c: a stream is captured into that graph: streams and events know its nodes. */
bool capture_has(const struct graph *graph);

/* words.c */
enum { MOST_OPERATIONS = 256 }; /* in one batch */
hipError_t words_prepare(const struct memory_operation *operations, unsigned count, struct operation *call);

/* user_objects.c */
hipError_t objects_copy(struct graph *to, const struct graph *from);
void objects_let_go(struct graph *graph);
hipError_t objects_hold_while(const struct graph *executable, struct stream *stream); /* until what is on the stream is done */

#endif
