/* Checks of handles and streams on entry, as functions.txt requires. */
#include "capture.h"
#include "checks.h"
#include "streams.h"

static hipError_t alive(const void *handle, enum handle_kind kind, hipError_t otherwise)
{
    return handle_is(handle, kind) ? hipSuccess : otherwise;
}

hipError_t check_stream(stream_t stream) { return stream_of(stream) ? hipSuccess : hipErrorContextIsDestroyed; }

hipError_t check_event(event_t event)
{
    return event ? alive(event, HANDLE_EVENT, hipErrorContextIsDestroyed) : hipErrorInvalidHandle;
}

hipError_t check_graph(graph_t graph) { return alive(graph, HANDLE_GRAPH, hipErrorInvalidValue); }
hipError_t check_exec(exec_t executable) { return alive(executable, HANDLE_EXEC, hipErrorInvalidValue); }
hipError_t check_node(node_t node) { return alive(node, HANDLE_NODE, hipErrorInvalidValue); }
hipError_t check_module(module_t module) { return alive(module, HANDLE_MODULE, hipErrorInvalidHandle); }
hipError_t check_kernel(kernel_t kernel) { return alive(kernel, HANDLE_KERNEL, hipErrorInvalidHandle); }
hipError_t check_pool(pool_t pool) { return alive(pool, HANDLE_POOL, hipErrorInvalidValue); }
hipError_t check_library(library_t library) { return alive(library, HANDLE_LIBRARY, hipErrorInvalidHandle); }
hipError_t check_array(array_t array) { return alive(array, HANDLE_ARRAY, hipErrorInvalidHandle); }
hipError_t check_backing(backing_t backing) { return alive(backing, HANDLE_BACKING, hipErrorInvalidValue); }

hipError_t check_recorded(stream_t handle)
{
    const struct stream *stream = captures_go_on() ? stream_of(handle) : NULL;
    return stream ? capture_check(stream) : hipSuccess;
}
