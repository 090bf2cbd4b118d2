/* Kernel nodes. A node keeps its arguments as its own kernarg segment; pointers that programs get lead into that. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "graph.h"
#include "launches.h"

enum { ACCESS_POLICY_WINDOW = 1, PRIORITY = 8 }; /* as ATTRIBUTE_COOPERATIVE */
enum { PERSISTING = 2, GREATEST_PRIORITY = -1, LEAST_PRIORITY = 1 };

static hipError_t point_to_arguments(struct content *content)
{
    const struct kernel *kernel = content->operation.launch.kernel;
    content->launch.args = calloc(kernel->argument_count + 1u, sizeof *content->launch.args);
    if (!content->launch.args)
        return hipErrorOutOfMemory;
    for (uint32_t i = 0; i < kernel->argument_count; i++)
        content->launch.args[i] = (char *)content->operation.launch.kernarg + kernel->arguments[i].offset;
    return hipSuccess;
}

static hipError_t find_kernel(void *function, struct kernel **kernel)
{
    if (!function)
        return hipErrorInvalidValue;
    if (handle_is(function, HANDLE_KERNEL)) {
        *kernel = function;
        return hipSuccess;
    }
    return function_kernel(function, device_current(), kernel);
}

static hipError_t prepare(void *given, struct content *content)
{
    const struct launch_params *params = given;
    struct kernel *kernel;
    *content = (struct content){.operation.kind = OPERATION_NOTHING};
    hipError_t error = find_kernel(params->function, &kernel);
    if (error || (!params->args && !params->extra) || (params->args && params->extra))
        return error ? error : hipErrorInvalidValue;
    struct launch launch = {kernel, params->grid, params->block, params->lds_bytes, params->args, params->extra, false,
                            0, 0, params->function, WHOLE};
    error = launch_prepare(&launch, &content->operation);
    if (error)
        return error;
    content->launch.in_buffer = params->extra != NULL;
    error = point_to_arguments(content);
    if (error)
        operation_discard(&content->operation);
    return error;
}

void launch_captured(struct content *content)
{
    if (point_to_arguments(content) != hipSuccess)
        content->launch.in_buffer = true; /* which needs no list of arguments */
}

static hipError_t copy(struct content *to, const struct content *from, bool ready)
{
    (void)from, (void)ready;
    return point_to_arguments(to);
}

static void discard(struct content *content) { free(content->launch.args); }

static bool same(struct dim3 a, struct dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

/* What no parameters say: attributes, and what the last work-groups of such a grid lack. */
static void keep(struct content *content, const struct content *old)
{
    if (same(content->operation.launch.grid, old->operation.launch.grid) &&
        same(content->operation.launch.block, old->operation.launch.block))
        content->operation.launch.lacking = old->operation.launch.lacking;
    content->launch.attribute = old->launch.attribute;
    content->launch.value = old->launch.value;
    content->operation.launch.cooperative |= old->operation.launch.cooperative;
}

static void describe(FILE *out, const struct content *content, unsigned flags)
{
    enum { VERBOSE = 1, PARAMS = 1 << 2, ATTRIBUTES = 1 << 9, HANDLES = 1 << 10 };
    struct dim3 grid = content->operation.launch.grid, block = content->operation.launch.block;
    fprintf(out, "\\n%s", content->operation.launch.kernel->name);
    if (flags & (VERBOSE | PARAMS))
        fprintf(out, "\\n(%u,%u,%u),(%u,%u,%u),%u", grid.x, grid.y, grid.z, block.x, block.y, block.z,
                content->operation.launch.lds_bytes);
    if (flags & (VERBOSE | ATTRIBUTES))
        fprintf(out, "\\nattribute %d cooperative %u", content->launch.attribute, content->operation.launch.cooperative);
    if (flags & (VERBOSE | HANDLES))
        fprintf(out, "\\nfunction %p", content->operation.launch.function);
}

const struct node_kind LAUNCH_KIND = {NODE_LAUNCH, "KERNEL", "octagon", true, 0, prepare, copy, discard, keep,
                                      NULL, node_put_operation, describe};

hipError_t hipGraphAddKernelNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                 const struct launch_params *params)
{
    struct content content;
    hipError_t error = prepare((void *)params, &content);
    return node_add(node, graph, before, count, &LAUNCH_KIND, error, &content);
}

hipError_t hipGraphKernelNodeGetParams(struct node *node, struct launch_params *params)
{
    if (!is_of(node, NODE_LAUNCH))
        return hipErrorInvalidValue;
    const struct operation *operation = &node->content.operation;
    node->content.launch.buffer_bytes = operation->launch.bytes;
    void *extra[5] = {LAUNCH_BUFFER, operation->launch.kernarg, LAUNCH_BUFFER_BYTES, &node->content.launch.buffer_bytes, LAUNCH_END};
    memcpy(node->content.launch.extra, extra, sizeof extra);
    bool in_buffer = node->content.launch.in_buffer;
    *params = (struct launch_params){operation->launch.block, in_buffer ? node->content.launch.extra : NULL,
                                     (void *)operation->launch.function, operation->launch.grid,
                                     in_buffer ? NULL : node->content.launch.args, operation->launch.lds_bytes};
    return hipSuccess;
}

hipError_t hipGraphKernelNodeSetParams(struct node *node, const struct launch_params *params)
{
    struct content content;
    hipError_t error = prepare((void *)params, &content);
    return node_set(node, &LAUNCH_KIND, error, &content);
}

hipError_t hipGraphExecKernelNodeSetParams(struct graph *executable, struct node *node, const struct launch_params *params)
{
    struct content content;
    hipError_t error = prepare((void *)params, &content);
    return exec_set(executable, node, &LAUNCH_KIND, error, &content);
}

/* Attributes: one of a node, the last that was set. */

static bool is_attribute(int attribute)
{
    return attribute == ACCESS_POLICY_WINDOW || attribute == ATTRIBUTE_COOPERATIVE || attribute == PRIORITY;
}

/* The window is what properties call accessPolicyMaxWindowSize: none on these targets. */
static bool sound(int attribute, const union attribute_value *value)
{
    if (attribute == PRIORITY)
        return value->priority >= GREATEST_PRIORITY && value->priority <= LEAST_PRIORITY;
    if (attribute != ACCESS_POLICY_WINDOW)
        return true;
    return value->window.hit_ratio >= 0 && value->window.hit_ratio <= 1 && value->window.miss_property != PERSISTING &&
           value->window.bytes == 0;
}

hipError_t hipGraphKernelNodeSetAttribute(struct node *node, int attribute, const union attribute_value *value)
{
    if (!is_of(node, NODE_LAUNCH) || !is_attribute(attribute) || !sound(attribute, value))
        return hipErrorInvalidValue;
    node->content.launch.attribute = attribute;
    node->content.launch.value = *value;
    if (attribute == ATTRIBUTE_COOPERATIVE)
        node->content.operation.launch.cooperative = value->cooperative != 0;
    return hipSuccess;
}

hipError_t hipGraphKernelNodeGetAttribute(struct node *node, int attribute, union attribute_value *value)
{
    if (!is_of(node, NODE_LAUNCH) || !is_attribute(attribute))
        return hipErrorInvalidValue;
    if (node->content.launch.attribute && node->content.launch.attribute != attribute)
        return hipErrorInvalidValue;
    *value = node->content.launch.value;
    return hipSuccess;
}

hipError_t hipGraphKernelNodeCopyAttributes(struct node *from, struct node *to)
{
    if (!is_of(from, NODE_LAUNCH) || !is_of(to, NODE_LAUNCH))
        return hipErrorInvalidValue;
    if (to->content.launch.attribute && to->content.launch.attribute != from->content.launch.attribute)
        return hipErrorInvalidContext;
    return from->content.launch.attribute
               ? hipGraphKernelNodeSetAttribute(to, from->content.launch.attribute, &from->content.launch.value)
               : hipSuccess;
}
