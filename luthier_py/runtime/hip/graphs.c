/* Graphs built node by node: what each kind of node is told, and asked. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* From parameters to operations; what they hold is the caller's. */

static hipError_t launch_of(const struct launch_params *params, struct operation *operation)
{
    struct kernel *kernel;
    hipError_t error = function_kernel(params->function, device_current(), &kernel);
    if (error && handle_is(params->function, HANDLE_KERNEL)) {
        kernel = params->function;
        error = hipSuccess;
    }
    struct launch launch = {kernel, params->grid, params->block, params->lds_bytes, params->args, params->extra, false};
    return error ? error : launch_prepare(&launch, operation);
}

static hipError_t copy_of(const struct copy3d *params, struct operation *operation)
{
    return copy3d_prepare(params, operation);
}

static hipError_t line_of(void *to, const void *from, size_t bytes, struct operation *operation)
{
    return copy_prepare(&(struct transfer){to, from, bytes, bytes, 0, 0, bytes, 1, 1, false}, operation);
}

static hipError_t fill_of(const struct fill_params *params, struct operation *operation)
{
    if (params->element != 1 && params->element != 2 && params->element != 4)
        return hipErrorInvalidValue;
    struct fill fill = {params->to, params->value, params->element, params->pitch, 0, params->width, params->height, 1};
    return fill_prepare(&fill, operation);
}

static hipError_t call_of(const struct call_params *params, struct operation *operation)
{
    if (!params->function)
        return hipErrorInvalidValue;
    *operation = (struct operation){OPERATION_CALL, .call = {params->function, params->data}};
    return hipSuccess;
}

static hipError_t operation_of(const struct node_params *params, struct operation *operation)
{
    const void *content = params->content;
    switch (params->type) {
    case NODE_LAUNCH: return launch_of(content, operation);
    case NODE_COPY: return copy_of((const void *)(params->content + 16), operation); /* after flags */
    case NODE_FILL: return fill_of(content, operation);
    case NODE_CALL: return call_of(content, operation);
    default: return hipErrorNotSupported;
    }
}

/* A new node. `error`: of what was made before. */

static bool good_place(struct node **node, const struct graph *graph, struct node *const *before, size_t count)
{
    bool good = node && (before || !count);
    for (size_t i = 0; good && i < count; i++)
        good = handle_is(before[i], HANDLE_NODE) && before[i]->graph == graph;
    return good;
}

static hipError_t add(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                      enum node_type type, hipError_t error, struct operation *operation)
{
    if (!error && !good_place(node, graph, before, count)) {
        if (operation)
            operation_discard(operation);
        error = hipErrorInvalidValue;
    }
    return error ? error : graph_add(graph, type, operation, before, count, node);
}

hipError_t hipGraphAddKernelNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                 const struct launch_params *params)
{
    struct operation operation;
    hipError_t error = launch_of(params, &operation);
    return add(node, graph, before, count, NODE_LAUNCH, error, &operation);
}

hipError_t hipGraphAddMemcpyNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                 const struct copy3d *params)
{
    struct operation operation;
    hipError_t error = copy_of(params, &operation);
    return add(node, graph, before, count, NODE_COPY, error, &operation);
}

hipError_t hipGraphAddMemcpyNode1D(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                   void *to, const void *from, size_t bytes, int kind)
{
    struct operation operation;
    (void)kind;
    hipError_t error = line_of(to, from, bytes, &operation);
    return add(node, graph, before, count, NODE_COPY, error, &operation);
}

hipError_t hipGraphAddMemcpyNodeToSymbol(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                         const void *symbol, const void *from, size_t bytes, size_t offset, int kind)
{
    void *to;
    hipError_t error = symbol_place(symbol, device_current(), bytes, offset, &to);
    return error ? error : hipGraphAddMemcpyNode1D(node, graph, before, count, to, from, bytes, kind);
}

hipError_t hipGraphAddMemcpyNodeFromSymbol(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                           void *to, const void *symbol, size_t bytes, size_t offset, int kind)
{
    void *from;
    hipError_t error = symbol_place(symbol, device_current(), bytes, offset, &from);
    return error ? error : hipGraphAddMemcpyNode1D(node, graph, before, count, to, from, bytes, kind);
}

hipError_t hipGraphAddMemsetNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                 const struct fill_params *params)
{
    struct operation operation;
    hipError_t error = fill_of(params, &operation);
    return add(node, graph, before, count, NODE_FILL, error, &operation);
}

hipError_t hipGraphAddHostNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                               const struct call_params *params)
{
    struct operation operation;
    hipError_t error = call_of(params, &operation);
    return add(node, graph, before, count, NODE_CALL, error, &operation);
}

hipError_t hipGraphAddEmptyNode(struct node **node, struct graph *graph, struct node *const *before, size_t count)
{
    return add(node, graph, before, count, NODE_EMPTY, hipSuccess, NULL);
}

static hipError_t add_event(struct node **node, struct graph *graph, struct node *const *before, size_t count, event_t event,
                            enum node_type type)
{
    hipError_t error = add(node, graph, before, count, type, hipSuccess, NULL);
    if (!error)
        (*node)->event = event;
    return error;
}

hipError_t hipGraphAddEventRecordNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                      event_t event)
{
    return add_event(node, graph, before, count, event, NODE_RECORD);
}

hipError_t hipGraphAddEventWaitNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                    event_t event)
{
    return add_event(node, graph, before, count, event, NODE_WAIT);
}

hipError_t hipGraphAddChildGraphNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                     struct graph *child)
{
    struct graph *copy;
    hipError_t error = graph_copy(&copy, child, HANDLE_GRAPH);
    if (error)
        return error;
    error = add(node, graph, before, count, NODE_GRAPH, hipSuccess, NULL);
    if (error)
        graph_destroy(copy);
    else
        (*node)->child = copy;
    return error;
}

hipError_t hipGraphAddNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                           const struct node_params *params)
{
    struct operation operation;
    hipError_t error = operation_of(params, &operation);
    return error ? error : add(node, graph, before, count, (enum node_type)params->type, hipSuccess, &operation);
}

/* Changes: of a node of a graph, or of its copy in an executable. */

static struct node *own(const struct graph *executable, struct node *node)
{
    return node_in(executable, node);
}

static hipError_t set(struct node *node, enum node_type type, hipError_t error, struct operation *operation)
{
    if (error)
        return error;
    if (node && node->type == type) {
        node_set(node, operation);
        return hipSuccess;
    }
    operation_discard(operation);
    return hipErrorInvalidValue;
}

hipError_t hipGraphKernelNodeSetParams(struct node *node, const struct launch_params *params)
{
    struct operation operation;
    hipError_t error = launch_of(params, &operation);
    return set(node, NODE_LAUNCH, error, &operation);
}

hipError_t hipGraphExecKernelNodeSetParams(struct graph *executable, struct node *node, const struct launch_params *params)
{
    return hipGraphKernelNodeSetParams(own(executable, node), params);
}

hipError_t hipGraphMemcpyNodeSetParams(struct node *node, const struct copy3d *params)
{
    struct operation operation;
    hipError_t error = copy_of(params, &operation);
    return set(node, NODE_COPY, error, &operation);
}

hipError_t hipGraphExecMemcpyNodeSetParams(struct graph *executable, struct node *node, const struct copy3d *params)
{
    return hipGraphMemcpyNodeSetParams(own(executable, node), params);
}

hipError_t hipGraphMemcpyNodeSetParams1D(struct node *node, void *to, const void *from, size_t bytes, int kind)
{
    struct operation operation;
    (void)kind;
    hipError_t error = line_of(to, from, bytes, &operation);
    return set(node, NODE_COPY, error, &operation);
}

hipError_t hipGraphExecMemcpyNodeSetParams1D(struct graph *executable, struct node *node, void *to, const void *from,
                                             size_t bytes, int kind)
{
    return hipGraphMemcpyNodeSetParams1D(own(executable, node), to, from, bytes, kind);
}

hipError_t hipGraphMemsetNodeSetParams(struct node *node, const struct fill_params *params)
{
    struct operation operation;
    hipError_t error = fill_of(params, &operation);
    return set(node, NODE_FILL, error, &operation);
}

hipError_t hipGraphExecMemsetNodeSetParams(struct graph *executable, struct node *node, const struct fill_params *params)
{
    return hipGraphMemsetNodeSetParams(own(executable, node), params);
}

hipError_t hipGraphHostNodeSetParams(struct node *node, const struct call_params *params)
{
    struct operation operation;
    hipError_t error = call_of(params, &operation);
    return set(node, NODE_CALL, error, &operation);
}

hipError_t hipGraphExecHostNodeSetParams(struct graph *executable, struct node *node, const struct call_params *params)
{
    return hipGraphHostNodeSetParams(own(executable, node), params);
}

hipError_t hipGraphNodeSetParams(struct node *node, const struct node_params *params)
{
    struct operation operation;
    hipError_t error = operation_of(params, &operation);
    return error ? error : set(node, (enum node_type)params->type, hipSuccess, &operation);
}

hipError_t hipGraphExecNodeSetParams(struct graph *executable, struct node *node, const struct node_params *params)
{
    return hipGraphNodeSetParams(own(executable, node), params);
}

/* Questions. */

static bool is_of(const struct node *node, enum node_type type, const void *answer)
{
    return answer && node->type == type;
}

hipError_t hipGraphKernelNodeGetParams(struct node *node, struct launch_params *params)
{
    if (!is_of(node, NODE_LAUNCH, params))
        return hipErrorInvalidValue;
    struct kernel *kernel = node->operation.launch.kernel;
    if (!node->args)
        node->args = calloc(kernel->argument_count + 1u, sizeof *node->args);
    if (!node->args)
        return hipErrorOutOfMemory;
    for (uint32_t i = 0; i < kernel->argument_count; i++)
        node->args[i] = (char *)node->operation.launch.kernarg + kernel->arguments[i].offset;
    *params = (struct launch_params){node->operation.launch.block, NULL, kernel, node->operation.launch.grid, node->args,
                                     node->operation.launch.lds_bytes};
    return hipSuccess;
}

hipError_t hipGraphMemcpyNodeGetParams(struct node *node, struct copy3d *params)
{
    if (!is_of(node, NODE_COPY, params))
        return hipErrorInvalidValue;
    copy3d_describe(&node->operation.copy, params);
    return hipSuccess;
}

hipError_t hipGraphMemsetNodeGetParams(struct node *node, struct fill_params *params)
{
    if (!is_of(node, NODE_FILL, params))
        return hipErrorInvalidValue;
    *params = (struct fill_params){node->operation.fill.to, node->operation.fill.element, node->operation.fill.height,
                                   node->operation.fill.pitch, node->operation.fill.value, node->operation.fill.count};
    return hipSuccess;
}

hipError_t hipGraphHostNodeGetParams(struct node *node, struct call_params *params)
{
    if (!is_of(node, NODE_CALL, params))
        return hipErrorInvalidValue;
    *params = (struct call_params){node->operation.call.function, node->operation.call.data};
    return hipSuccess;
}

hipError_t hipGraphChildGraphNodeGetGraph(struct node *node, struct graph **graph)
{
    if (!is_of(node, NODE_GRAPH, graph))
        return hipErrorInvalidValue;
    *graph = node->child;
    return hipSuccess;
}
