/* Changes to graphs that are ready to launch, applied to their shadows, too: whole graphs, kernels, children, all else.
 * A shadow that does not take a change is dropped, and its graph runs as it is.
 */
#include "graphed.h"

#include <stdlib.h>

/* Put clones in the kernels' place in `graph` while the shadow takes what is in it. */
static bool take_over(struct executable *executable, struct executable *from, hipError_t (*take)(struct executable *, void *), void *what)
{
    hipError_t before = REAL(hipPeekAtLastError)();
    for (size_t i = 0; i < from->count; i++)
        clone_put(&from->launches[i]);
    hipError_t error = take(executable, what);
    for (size_t i = 0; i < from->count; i++)
        clone_restore(&from->launches[i]);
    restore_error(before);
    return error == hipSuccess;
}

/* From now on this is launched there; the program still calls it by its node. */
static void renew(struct graph_launch *launch, const struct graph_launch *from)
{
    launch->copy = from->copy;
    launch->shape = from->shape;
    launch->explained = from->explained;
}

static hipError_t take_graph(struct executable *executable, void *graph)
{
    struct node *bad;
    int result;
    return REAL(hipGraphExecUpdate)(executable->shadow, graph, &bad, &result);
}

/* Launches of both graphs come in the same order, since an update is possible. */
static void update(struct executable *executable, struct graph *graph)
{
    struct executable from = {.count = 0};
    if (!executable->shadow) {
        shadow_prepare(executable, graph);
        return;
    }
    bool same = launches_list(&from, graph) && from.count == executable->count;
    if (!same || !take_over(executable, &from, take_graph, graph))
        shadow_drop(executable);
    for (size_t i = 0; executable->shadow && i < from.count; i++)
        renew(&executable->launches[i], &from.launches[i]);
    free(from.launches);
}

hipError_t hipGraphExecUpdate(struct graph *graph, struct graph *from, struct node **bad, int *result)
{
    hipError_t error = REAL(hipGraphExecUpdate)(graph, from, bad, result);
    graphs_lock();
    struct executable *executable = error ? NULL : graphs_find(graph);
    if (executable)
        update(executable, from);
    graphs_unlock();
    return error;
}

static struct graph_launch *launch_of(const struct executable *executable, const struct node *node)
{
    for (size_t i = 0; i < executable->count; i++)
        if (executable->launches[i].node == node)
            return &executable->launches[i];
    return NULL;
}

static void change_launch(struct graph *graph, struct node *node, const struct launch_params *params)
{
    graphs_lock();
    struct executable *executable = graphs_find(graph);
    struct graph_launch *launch = executable && executable->shadow ? launch_of(executable, node) : NULL;
    if (launch)
        launch_set(executable, launch, *params);
    else if (executable)
        shadow_drop(executable);
    graphs_unlock();
}

hipError_t hipGraphExecKernelNodeSetParams(struct graph *graph, struct node *node, const struct launch_params *params)
{
    hipError_t error = REAL(hipGraphExecKernelNodeSetParams)(graph, node, params);
    if (!error)
        change_launch(graph, node, params);
    return error;
}

/* Another child: its kernels are launched where those of the node's own graph were. */

struct new_child { struct node *node; struct graph *graph; };

static hipError_t take_child(struct executable *executable, void *what)
{
    const struct new_child *child = what;
    return REAL(hipGraphExecChildGraphNodeSetParams)(executable->shadow, child->node, child->graph);
}

static void change_child(struct graph *graph, struct node *node, struct graph *child)
{
    struct executable before = {.count = 0}, after = {.count = 0};
    struct graph *own;
    graphs_lock();
    struct executable *executable = graphs_find(graph);
    bool same = executable && executable->shadow && REAL(hipGraphChildGraphNodeGetGraph)(node, &own) == hipSuccess &&
                launches_list(&before, own) && launches_list(&after, child) && before.count == after.count;
    if (executable && !(same && take_over(executable, &after, take_child, &(struct new_child){node, child})))
        shadow_drop(executable);
    for (size_t i = 0; executable && executable->shadow && i < after.count; i++) {
        struct graph_launch *launch = launch_of(executable, before.launches[i].node);
        if (launch)
            renew(launch, &after.launches[i]);
    }
    graphs_unlock();
    free(before.launches);
    free(after.launches);
}

hipError_t hipGraphExecChildGraphNodeSetParams(struct graph *graph, struct node *node, struct graph *child)
{
    hipError_t error = REAL(hipGraphExecChildGraphNodeSetParams)(graph, node, child);
    if (!error)
        change_child(graph, node, child);
    return error;
}

hipError_t hipGraphNodeSetEnabled(struct graph *graph, struct node *node, unsigned on)
{
    hipError_t error = REAL(hipGraphNodeSetEnabled)(graph, node, on);
    graphs_lock();
    struct executable *executable = error ? NULL : graphs_find(graph);
    if (executable && executable->shadow && REAL(hipGraphNodeSetEnabled)(executable->shadow, node, on) != hipSuccess)
        shadow_drop(executable);
    for (size_t i = 0; executable && i < executable->count; i++)
        if (executable->launches[i].node == node)
            executable->launches[i].off = !on;
    graphs_unlock();
    return error;
}

/* After a change of the program's; drop a shadow that does not take it. */
#define CHANGED(name, parameters, shadow_takes_it, ...)                                                                     \
    hipError_t name parameters                                                                                            \
    {                                                                                                                     \
        hipError_t error = REAL(name)(graph, __VA_ARGS__);                                                                \
        graphs_lock();                                                                                        \
        struct executable *executable = error ? NULL : graphs_find(graph);                                                       \
        if (executable && executable->shadow && !(shadow_takes_it))                                                           \
            shadow_drop(executable);                                                                                        \
        graphs_unlock();                                                                                      \
        return error;                                                                                                     \
    }
#define CHANGE(name, parameters, ...)                                                                                     \
    CHANGED(name, parameters, REAL(name)(executable->shadow, __VA_ARGS__) == hipSuccess, __VA_ARGS__)

CHANGE(hipGraphExecMemcpyNodeSetParams, (struct graph *graph, struct node *node, const struct copy3d *params), node, params)
CHANGE(hipGraphExecMemcpyNodeSetParams1D,
       (struct graph *graph, struct node *node, void *to, const void *from, size_t bytes, int kind), node, to, from, bytes, kind)
CHANGE(hipGraphExecMemsetNodeSetParams, (struct graph *graph, struct node *node, const struct fill_params *params), node, params)
CHANGE(hipGraphExecHostNodeSetParams, (struct graph *graph, struct node *node, const struct call_params *params), node, params)

CHANGE(hipGraphExecMemcpyNodeSetParamsFromSymbol,
       (struct graph *graph, struct node *node, void *to, const void *symbol, size_t bytes, size_t offset, int kind),
       node, to, symbol, bytes, offset, kind)
CHANGE(hipGraphExecMemcpyNodeSetParamsToSymbol,
       (struct graph *graph, struct node *node, const void *symbol, const void *from, size_t bytes, size_t offset, int kind),
       node, symbol, from, bytes, offset, kind)
CHANGE(hipDrvGraphExecMemcpyNodeSetParams,
       (struct graph *graph, struct node *node, const struct driver_copy *params, void *context), node, params, context)
CHANGE(hipDrvGraphExecMemsetNodeSetParams,
       (struct graph *graph, struct node *node, const struct fill_params *params, void *context), node, params, context)
CHANGE(hipGraphExecEventRecordNodeSetEvent, (struct graph *graph, struct node *node, event_t event), node, event)
CHANGE(hipGraphExecEventWaitNodeSetEvent, (struct graph *graph, struct node *node, event_t event), node, event)
CHANGE(hipGraphExecExternalSemaphoresSignalNodeSetParams,
       (struct graph *graph, struct node *node, const struct semaphore_params *params), node, params)
CHANGE(hipGraphExecExternalSemaphoresWaitNodeSetParams,
       (struct graph *graph, struct node *node, const struct semaphore_params *params), node, params)
CHANGE(hipGraphExecBatchMemOpNodeSetParams,
       (struct graph *graph, struct node *node, const struct batch_params *params), node, params)

static void change_other(struct graph *graph, struct node *node, struct node_params *params)
{
    graphs_lock();
    struct executable *executable = graphs_find(graph);
    if (executable && executable->shadow && REAL(hipGraphExecNodeSetParams)(executable->shadow, node, params) != hipSuccess)
        shadow_drop(executable);
    graphs_unlock();
}

/* HIP has this function since it counts types of nodes from 0. */
hipError_t hipGraphExecNodeSetParams(struct graph *graph, struct node *node, struct node_params *params)
{
    hipError_t error = REAL(hipGraphExecNodeSetParams)(graph, node, params);
    const void *content = error ? NULL : params->content;
    if (!content)
        return error;
    if (params->type == NODE_LAUNCH)
        change_launch(graph, node, content);
    else if (params->type == NODE_GRAPH)
        change_child(graph, node, *(struct graph *const *)content);
    else
        change_other(graph, node, params);
    return error;
}
