/* What programs bring, where it comes in: kinds of handles, checks and words of functions.txt. */
#ifndef LUTHIER_CHECKS_H
#define LUTHIER_CHECKS_H

#include "luthier.h"

enum handle_kind {
    HANDLE_STREAM = 1, HANDLE_EVENT, HANDLE_GRAPH, HANDLE_EXEC, HANDLE_NODE, HANDLE_MODULE, HANDLE_KERNEL, HANDLE_POOL,
    HANDLE_LIBRARY, HANDLE_ARRAY, HANDLE_OBJECT, HANDLE_BACKING
};
static inline bool between(long long value, long long low, long long high) { return low <= value && value <= high; }
hipError_t check_stream(stream_t stream);
hipError_t check_event(event_t event);
hipError_t check_graph(graph_t graph);
hipError_t check_exec(exec_t executable);
hipError_t check_node(node_t node);
hipError_t check_module(module_t module);
hipError_t check_kernel(kernel_t kernel);
hipError_t check_pool(pool_t pool);
hipError_t check_library(library_t library);
hipError_t check_array(array_t array);
hipError_t check_backing(backing_t backing);
hipError_t check_recorded(stream_t stream);

/* captures.c */
hipError_t check_unsafe(void);
hipError_t check_legacy(void);

/* errors.c */
hipError_t check_images(void); /* does this device have images? */
hipError_t not_supported(const char *name, atomic_flag *said);

#endif
