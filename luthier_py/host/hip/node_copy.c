/* Copy nodes: blocks in three dimensions, lines, lines to and from symbols, and blocks as the driver's interface says them.
 * The kind of a copy is compared when an executable changes, and must not contradict HIP's table of addresses.
 */
#include <string.h>

#include "device.h"
#include "graph.h"

static int kind_between(const void *to, const void *from)
{
    if (is_pageable(from))
        return is_pageable(to) ? COPY_HOST_TO_HOST : COPY_TO_DEVICE;
    return is_pageable(to) ? COPY_TO_HOST : COPY_ON_DEVICE;
}

/* Something must be copied; nothing is no node. */
static hipError_t some(hipError_t error, const struct content *content)
{
    return error ? error : content->operation.kind == OPERATION_NOTHING ? hipErrorInvalidValue : hipSuccess;
}

/* One row needs no pitch. */
static hipError_t prepare_block(void *given, struct content *content)
{
    struct copy3d params = *(const struct copy3d *)given;
    *content = (struct content){.copy = {.params = params}};
    if ((!params.from.address && !params.from_array) || (!params.to.address && !params.to_array))
        return hipErrorInvalidValue;
    if (params.extent.height == 1 && params.extent.depth == 1) {
        params.from.pitch = params.from.pitch ? params.from.pitch : params.extent.width;
        params.to.pitch = params.to.pitch ? params.to.pitch : params.extent.width;
    }
    return some(copy3d_prepare(&params, &content->operation), content);
}

static hipError_t prepare_line(void *to, const void *from, size_t bytes, int kind, struct content *content)
{
    struct transfer line = {to, from, bytes, bytes, 0, 0, bytes, 1, 1, false};
    int found = kind_between(to, from);
    *content = (struct content){.copy.params = {
        .from = {.address = (void *)from}, .to = {.address = to}, .extent = {bytes, 1, 1}, .kind = kind}};
    hipError_t error = some(copy_prepare(&line, &content->operation), content);
    bool one_known = found == COPY_TO_DEVICE || found == COPY_TO_HOST;
    return error ? error : one_known && kind != found && kind != COPY_DEFAULT ? hipErrorInvalidValue : hipSuccess;
}

void copy_captured(struct content *content) { copy3d_describe(&content->operation.copy, &content->copy.params); }

static hipError_t fits(const struct content *old, const struct content *other)
{
    return old->copy.params.kind == other->copy.params.kind ? hipSuccess : hipErrorInvalidValue;
}

static void describe(FILE *out, const struct content *content, unsigned flags)
{
    enum { VERBOSE = 1, PARAMS = 1 << 3 };
    static const char *const NAMES[] = {"HtoH", "HtoD", "DtoH", "DtoD"};
    const struct transfer *copy = &content->operation.copy;
    fprintf(out, "\\n(%s,%zu)", NAMES[kind_between(copy->to, copy->from)], copy->width * copy->height * copy->depth);
    if (flags & (VERBOSE | PARAMS))
        fprintf(out, "\\nfrom %p pitch %zu to %p pitch %zu\\nextent %zu %zu %zu", copy->from, copy->from_pitch, copy->to,
                copy->to_pitch, copy->width, copy->height, copy->depth);
}

const struct node_kind COPY_KIND = {NODE_COPY, "MEMCPY", "trapezium", true, 16, prepare_block, .fits = fits,
                                    .carry_out = node_put_operation, .describe = describe};

/* Blocks. */

hipError_t hipGraphAddMemcpyNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                 const struct copy3d *params)
{
    struct content content;
    hipError_t error = prepare_block((void *)params, &content);
    return node_add(node, graph, before, count, &COPY_KIND, error, &content);
}

hipError_t hipGraphMemcpyNodeGetParams(struct node *node, struct copy3d *params)
{
    if (!is_of(node, NODE_COPY))
        return hipErrorInvalidValue;
    *params = node->content.copy.params;
    return hipSuccess;
}

hipError_t hipGraphMemcpyNodeSetParams(struct node *node, const struct copy3d *params)
{
    struct content content;
    hipError_t error = prepare_block((void *)params, &content);
    return node_set(node, &COPY_KIND, error, &content);
}

hipError_t hipGraphExecMemcpyNodeSetParams(struct graph *executable, struct node *node, const struct copy3d *params)
{
    struct content content;
    hipError_t error = prepare_block((void *)params, &content);
    return exec_set(executable, node, &COPY_KIND, error, &content);
}

/* Lines. */

hipError_t hipGraphAddMemcpyNode1D(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                   void *to, const void *from, size_t bytes, int kind)
{
    struct content content;
    hipError_t error = prepare_line(to, from, bytes, kind, &content);
    return node_add(node, graph, before, count, &COPY_KIND, error, &content);
}

hipError_t hipGraphMemcpyNodeSetParams1D(struct node *node, void *to, const void *from, size_t bytes, int kind)
{
    struct content content;
    hipError_t error = to == from ? hipErrorInvalidValue : prepare_line(to, from, bytes, kind, &content);
    return node_set(node, &COPY_KIND, error, &content);
}

hipError_t hipGraphExecMemcpyNodeSetParams1D(struct graph *executable, struct node *node, void *to, const void *from,
                                             size_t bytes, int kind)
{
    struct content content;
    hipError_t error = to == from ? hipErrorInvalidValue : prepare_line(to, from, bytes, kind, &content);
    return exec_set(executable, node, &COPY_KIND, error, &content);
}

/* Symbols: variables of the current device. */

static hipError_t prepare_symbol(const void *symbol, void *to, const void *from, size_t bytes, size_t offset, int kind,
                                 struct content *content)
{
    void *place;
    hipError_t error = symbol ? symbol_place(symbol, device_current(), bytes, offset, &place) : hipErrorInvalidSymbol;
    if (error || !bytes)
        return error ? error : hipErrorInvalidValue;
    error = to ? prepare_line(to, place, bytes, COPY_DEFAULT, content) : prepare_line(place, from, bytes, COPY_DEFAULT, content);
    content->copy.params.kind = kind;
    return error;
}

/* Changes, unlike additions, say which way, and refuse another symbol on the other side. `wrong`: the error for another way. */
static hipError_t check_symbol_kind(const void *other, int kind, int of_host, hipError_t wrong)
{
    struct variable found;
    if (symbol_variable(other, device_current(), &found) == hipSuccess)
        return hipErrorInvalidValue;
    bool on_device = kind == COPY_ON_DEVICE || kind == COPY_ON_DEVICE_NO_CU;
    bool good = kind == COPY_DEFAULT || kind == of_host || (on_device && !is_pageable(other));
    return good ? hipSuccess : wrong;
}

hipError_t hipGraphAddMemcpyNodeToSymbol(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                         const void *symbol, const void *from, size_t bytes, size_t offset, int kind)
{
    struct content content;
    hipError_t error = prepare_symbol(symbol, NULL, from, bytes, offset, kind, &content);
    return node_add(node, graph, before, count, &COPY_KIND, error, &content);
}

hipError_t hipGraphAddMemcpyNodeFromSymbol(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                           void *to, const void *symbol, size_t bytes, size_t offset, int kind)
{
    struct content content;
    hipError_t error = prepare_symbol(symbol, to, NULL, bytes, offset, kind, &content);
    return node_add(node, graph, before, count, &COPY_KIND, error, &content);
}

static hipError_t prepare_to(const void *symbol, const void *from, size_t bytes, size_t offset, int kind, struct content *content)
{
    hipError_t error = prepare_symbol(symbol, NULL, from, bytes, offset, kind, content);
    return error ? error : check_symbol_kind(from, kind, COPY_TO_DEVICE, hipErrorInvalidValue);
}

static hipError_t prepare_from(void *to, const void *symbol, size_t bytes, size_t offset, int kind, struct content *content)
{
    hipError_t error = prepare_symbol(symbol, to, NULL, bytes, offset, kind, content);
    return error ? error : check_symbol_kind(to, kind, COPY_TO_HOST, hipErrorInvalidMemcpyDirection);
}

hipError_t hipGraphMemcpyNodeSetParamsToSymbol(struct node *node, const void *symbol, const void *from, size_t bytes,
                                               size_t offset, int kind)
{
    struct content content;
    hipError_t error = prepare_to(symbol, from, bytes, offset, kind, &content);
    return node_set(node, &COPY_KIND, error, &content);
}

hipError_t hipGraphMemcpyNodeSetParamsFromSymbol(struct node *node, void *to, const void *symbol, size_t bytes,
                                                 size_t offset, int kind)
{
    struct content content;
    hipError_t error = prepare_from(to, symbol, bytes, offset, kind, &content);
    return node_set(node, &COPY_KIND, error, &content);
}

hipError_t hipGraphExecMemcpyNodeSetParamsToSymbol(struct graph *executable, struct node *node, const void *symbol,
                                                   const void *from, size_t bytes, size_t offset, int kind)
{
    struct content content;
    hipError_t error = prepare_to(symbol, from, bytes, offset, kind, &content);
    return exec_set(executable, node, &COPY_KIND, error, &content);
}

hipError_t hipGraphExecMemcpyNodeSetParamsFromSymbol(struct graph *executable, struct node *node, void *to,
                                                     const void *symbol, size_t bytes, size_t offset, int kind)
{
    struct content content;
    hipError_t error = prepare_from(to, symbol, bytes, offset, kind, &content);
    return exec_set(executable, node, &COPY_KIND, error, &content);
}

/* The driver's form. */

static hipError_t prepare_driver(const struct driver_copy *params, struct content *content)
{
    *content = (struct content){.copy = {.driver = *params}};
    hipError_t error = some(driver_copy_prepare(params, &content->operation), content);
    if (!error)
        copy3d_describe(&content->operation.copy, &content->copy.params);
    return error;
}

hipError_t hipDrvGraphAddMemcpyNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                    const struct driver_copy *params, void *context)
{
    struct content content;
    (void)context;
    hipError_t error = prepare_driver(params, &content);
    return node_add(node, graph, before, count, &COPY_KIND, error, &content);
}

hipError_t hipDrvGraphMemcpyNodeGetParams(struct node *node, struct driver_copy *params)
{
    if (!is_of(node, NODE_COPY))
        return hipErrorInvalidValue;
    *params = node->content.copy.driver;
    return hipSuccess;
}

hipError_t hipDrvGraphMemcpyNodeSetParams(struct node *node, const struct driver_copy *params)
{
    struct content content;
    hipError_t error = prepare_driver(params, &content);
    return node_set(node, &COPY_KIND, error, &content);
}

hipError_t hipDrvGraphExecMemcpyNodeSetParams(struct graph *executable, struct node *node, const struct driver_copy *params,
                                              void *context)
{
    struct content content;
    (void)context;
    hipError_t error = prepare_driver(params, &content);
    return exec_set(executable, node, &COPY_KIND, error, &content);
}
