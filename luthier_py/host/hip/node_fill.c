/* Fill nodes. */
#include "graph.h"

static hipError_t prepare(void *given, struct content *content)
{
    const struct fill_params *params = given;
    *content = (struct content){.fill = *params};
    if ((params->element != 1 && params->element != 2 && params->element != 4) || !params->to || !params->width || !params->height)
        return hipErrorInvalidValue;
    struct fill fill = {params->to, params->value, params->element, params->pitch, 0, params->width, params->height, 1};
    return fill_prepare(&fill, &content->operation);
}

void fill_captured(struct content *content)
{
    const struct fill *fill = &content->operation.fill;
    content->fill = (struct fill_params){fill->to, fill->element, fill->height, fill->pitch, fill->value, fill->count};
}

/* Rows of an executable keep their shape. */
static hipError_t fits(const struct content *old, const struct content *other)
{
    const struct fill *a = &old->operation.fill, *b = &other->operation.fill;
    bool same = a->count * a->element == b->count * b->element && a->height == b->height && a->depth == b->depth;
    return (b->height == 1 && b->depth == 1) || same ? hipSuccess : hipErrorInvalidValue;
}

static void describe(FILE *out, const struct content *content, unsigned flags)
{
    enum { VERBOSE = 1, PARAMS = 1 << 4 };
    const struct fill *fill = &content->operation.fill;
    fprintf(out, "\\n(%u,%zu)", fill->value, fill->element * fill->count * fill->height * fill->depth);
    if (flags & (VERBOSE | PARAMS))
        fprintf(out, "\\nto %p pitch %zu element %u width %zu height %zu depth %zu", fill->to, fill->pitch, fill->element,
                fill->count, fill->height, fill->depth);
}

const struct node_kind FILL_KIND = {NODE_FILL, "MEMSET", "invtrapezium", true, 0, prepare, .fits = fits,
                                    .carry_out = node_put_operation, .describe = describe};

hipError_t hipGraphAddMemsetNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                 const struct fill_params *params)
{
    struct content content;
    hipError_t error = prepare((void *)params, &content);
    return node_add(node, graph, before, count, &FILL_KIND, error, &content);
}

hipError_t hipDrvGraphAddMemsetNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                    const struct fill_params *params, void *context)
{
    (void)context;
    return hipGraphAddMemsetNode(node, graph, before, count, params);
}

hipError_t hipGraphMemsetNodeGetParams(struct node *node, struct fill_params *params)
{
    if (!is_of(node, NODE_FILL))
        return hipErrorInvalidValue;
    *params = node->content.fill;
    return hipSuccess;
}

hipError_t hipGraphMemsetNodeSetParams(struct node *node, const struct fill_params *params)
{
    struct content content;
    hipError_t error = prepare((void *)params, &content);
    return node_set(node, &FILL_KIND, error, &content);
}

hipError_t hipGraphExecMemsetNodeSetParams(struct graph *executable, struct node *node, const struct fill_params *params)
{
    struct content content;
    hipError_t error = prepare((void *)params, &content);
    return exec_set(executable, node, &FILL_KIND, error, &content);
}

hipError_t hipDrvGraphExecMemsetNodeSetParams(struct graph *executable, struct node *node, const struct fill_params *params,
                                              void *context)
{
    (void)context;
    return hipGraphExecMemsetNodeSetParams(executable, node, params);
}
