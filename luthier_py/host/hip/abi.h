/* Types of HIP's ABI, as programs lay them out. */
#ifndef LUTHIER_ABI_H
#define LUTHIER_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "errors.h" /* generated from errors.txt: hipError_t */

enum { /* hipMemcpyKind */
    COPY_HOST_TO_HOST, COPY_TO_DEVICE, COPY_TO_HOST, COPY_ON_DEVICE, COPY_DEFAULT, COPY_ON_DEVICE_NO_CU = 1024
};
struct dim3 { uint32_t x, y, z; };
struct extent { size_t width, height, depth; };
struct position { size_t x, y, z; };
struct location { int type, id; };
struct pitched { void *address; size_t pitch, width, height; };
struct copy3d {
    void *from_array; struct position from_at; struct pitched from;
    void *to_array; struct position to_at; struct pitched to;
    struct extent extent; int kind;
};
struct channel_desc { int x, y, z, w, kind; };
struct array_desc { size_t width, height; int format; unsigned channels; };
struct array3d_desc { size_t width, height, depth; int format; unsigned channels, flags; };
struct memory_handle { uint64_t words[8]; };
struct pointer_attributes { int type, device; void *device_address, *host_address; int managed; unsigned flags; };
struct function_attributes {
    int binary_version, cache_mode; size_t const_bytes, local_bytes;
    int max_dynamic_lds, max_threads, registers, carveout, ptx_version; size_t shared_bytes;
};
struct stream;
struct event;
struct graph;
struct node;
struct pool;
struct backing;
struct backing_properties;
struct work;
struct operation;
struct pool_properties;
struct access;
struct fat_binary;
struct kernel;
struct module;
struct library;
struct array;
struct driver_rows; /* transfers.h */
struct peer_box;
struct batch_box;
struct user_object;
struct capture;
union attribute_value; /* graph.h */
struct driver_copy;
struct allocate_params;
struct semaphore_params;
struct batch_params;
typedef struct stream *stream_t; /* handles: handles.h */
typedef struct event *event_t;
typedef struct graph *graph_t, *exec_t;
typedef struct node *node_t;
typedef struct module *module_t;
typedef struct kernel *kernel_t;
typedef struct pool *pool_t;
typedef struct library *library_t;
typedef struct array *array_t;
typedef struct backing *backing_t; /* hipMemGenericAllocationHandle_t */
typedef void (*stream_callback)(stream_t stream, hipError_t status, void *data);
struct nodes { struct node **at; size_t count, room; };
struct launch_params { struct dim3 block; void **extra, *function; struct dim3 grid; void **args; unsigned lds_bytes; };
struct fill_params { void *to; unsigned element; size_t height, pitch; unsigned value; size_t width; };
struct call_params { void (*function)(void *); void *data; };
struct node_params { int type, reserved[3]; char content[232]; };
struct instantiate_params { struct node *bad; unsigned long long flags; int result; stream_t upload; };
struct launch_attribute { int id; char padding[4]; union { char room[64]; int cooperative; } value; };
enum { ATTRIBUTE_COOPERATIVE = 2 }; /* hipLaunchAttributeID */
struct launch_config {
    struct dim3 grid, block; size_t lds_bytes; stream_t stream; struct launch_attribute *attributes; unsigned attribute_count;
};
struct function_launch { void *function; struct dim3 grid, block; void **args; size_t lds_bytes; stream_t stream; };
struct module_launch { kernel_t kernel; struct dim3 grid, block; unsigned lds_bytes; stream_t stream; void **args; };
struct driver_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, lds_bytes; stream_t stream;
    struct launch_attribute *attributes; unsigned attribute_count;
};
static inline bool is_cooperative(const struct launch_attribute *attributes, unsigned count)
{
    bool found = false;
    for (unsigned i = 0; i < count && attributes; i++)
        found |= attributes[i].id == ATTRIBUTE_COOPERATIVE && attributes[i].value.cooperative;
    return found;
}
/* Work-items, of which none is 0, as work-groups: these are no larger than the grid, and the last ones may lack some. */
struct items_grid { struct dim3 grid, block, lacking; };
static inline void cut_axis(uint32_t items, uint32_t *block, uint32_t *groups, uint32_t *lacking)
{
    *block = items < *block ? items : *block;
    *groups = items / *block + (items % *block != 0);
    *lacking = *groups * *block - items;
}
static inline struct items_grid cut_items(struct dim3 items, struct dim3 block)
{
    struct items_grid cut = {{0, 0, 0}, block, {0, 0, 0}};
    cut_axis(items.x, &cut.block.x, &cut.grid.x, &cut.lacking.x);
    cut_axis(items.y, &cut.block.y, &cut.grid.y, &cut.lacking.y);
    cut_axis(items.z, &cut.block.z, &cut.grid.z, &cut.lacking.z);
    return cut;
}
/* hipModuleLaunchKernel's `extra`: a buffer, its size and an end, in this order. */
#define LAUNCH_BUFFER ((void *)1)
#define LAUNCH_BUFFER_BYTES ((void *)2)
#define LAUNCH_END ((void *)3)
enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 }; /* hipStreamLegacy, hipStreamPerThread */
enum { EVENT_EXTERNAL = 1 }; /* hipEventRecordExternal, hipEventWaitExternal: also in a graph */

struct memory_operation { int kind; void *address; uint64_t value; unsigned flags; void *alias; uint64_t padding; };

#endif
