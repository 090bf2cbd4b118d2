/* What the files of this library share: its own state.
 *
 * The library is thin: memory lives in an arena that the worker maps at the same address, so copies are plain
 * memmove; launches are messages, executed in the order of their commands. See docs/runtime.md. A function of the API is
 * a line of functions.txt: its checks stand there, what is written here sees arguments that passed them.
 *
 * From below: device.c speaks to the worker; allocations.c knows what memory there is; operations.c, traces.c, steps.c, drivers.c and
 * work.c carry out what is on streams; free_lists.c and reservations.c keep memory until that is done, waits.c waits for it,
 * memory.c gives and takes; boxes.c, words.c and prepared_... check what is to be done; executed.c, nodes.c and node_... are
 * graphs; captures.c records, streams.c knows which stream is meant, perform.c does the one or the other. Calls of the API
 * are where what they need is; those that perform are on top, and fork.c.
 */
#ifndef LUTHIER_H
#define LUTHIER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "protocol.h"  /* generated from protocol.py: message codes */
#include "handles.h"
#include "wire.h"

#define API __attribute__((visibility("default")))
#ifndef LUTHIER_OUTSIDE
#include "functions.h" /* generated from functions.txt */
#endif

/* device.c: the worker, the arena, commands. */
struct device_facts {
    uint32_t compute_units, wave_size, lds_bytes, max_threads;
    uint64_t memory_bytes;
    const char *name;                    /* counted by name_bytes */
    uint32_t name_bytes;
    const void *properties[2];           /* hipDeviceProp_t before and since HIP 6 */
    uint32_t properties_bytes[2];
    const int32_t *attributes;           /* pairs of number and value */
    uint32_t attribute_count;
};
enum { MAX_DEVICES = 16 };
hipError_t device_ready(void);           /* start the worker if need be; 0 when it is there */
int device_count(void);
int device_current(void);                /* of this thread */
void device_make_current(int device);
hipError_t device_check(int device);     /* is there such a device? */
const struct device_facts *device_facts(int device);
hipError_t device_wait(uint64_t command); /* until everything up to this command has run */
bool device_done(uint64_t command);
bool device_tried(void);                 /* somebody has asked for it: its parts may have something */
void device_after_fork(void);
bool device_failed(void);                /* nothing that is not done will be */
bool device_lost(void);                  /* the worker has ended, and not by itself */
uint64_t device_submitted(void);
hipError_t device_submit(uint32_t code, const struct part *parts, int count, uint64_t *command);
hipError_t device_call(uint32_t code, const struct part *parts, int count, struct reply *reply);
hipError_t device_ask(uint32_t code, const uint64_t *question, int count, uint64_t *answer); /* numbers for a number */
bool in_arena(const void *address);
size_t device_arena_bytes(void);
size_t device_arena_offset(uintptr_t address);
int device_arena_file(void);            /* open as long as the program runs: others map it, too */
uint64_t *stamp_take(void);              /* a word, 0, that the worker can write a time to; NULL when there is none */
void stamp_give(uint64_t *stamp, uint64_t command); /* once that is done */
uint64_t nanoseconds(void);
hipError_t note(hipError_t error);       /* remember as this thread's last error */
hipError_t not_supported(const char *name, atomic_flag *said);

/* What is alive (handles.h), and alive.c: the checks of functions.txt. */
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

/* allocations.c */
enum kind { KIND_DEVICE, KIND_HOST, KIND_MANAGED, KIND_VARIABLE, KIND_PINNED, KIND_OPENED, KIND_MAPPED };
struct allocation {
    uintptr_t address; size_t bytes; enum kind kind; unsigned flags; int device; struct pool *pool;
    uintptr_t host; /* where the program sees it, if that is elsewhere; of what memory_find finds */
    uint32_t id;    /* memory_add gives it */
    bool leaving;   /* it will be freed by a stream */
    bool synchronous;
};
bool memory_add(struct allocation allocation); /* false: out of memory */
bool memory_remove(uintptr_t address);
/* What can be freed, out of the table; `leaving`: also what is its stream's to take. */
bool memory_take(const void *address, bool leaving, struct allocation *taken);
bool memory_find(const void *address, struct allocation *found);
bool is_on_device(const void *address);
/* Synchronous operations on device memory may return early, unless HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS says otherwise. */
bool memory_needs_no_wait(const void *address);
bool memory_known(const void *address, size_t bytes); /* inside one allocation */
bool memory_mark_leaving(const void *address, bool leaving); /* false: nothing that can be freed is there */
bool memory_mark_synchronous(const void *address, bool on);
bool memory_is_device(enum kind kind);
/* Coherent with the host while kernels run: pinned, registered and managed memory, unless flags say otherwise. */
bool memory_is_fine_grained(enum kind kind, unsigned flags);
bool memory_take_room(int device, size_t bytes); /* what hipMemGetInfo counts; false: there is none */
void memory_give_room(int device, size_t bytes);
size_t memory_left(int device);
enum { MEMORY_OF_KERNELS = 1 << 30 };     /* a flag: what kernels have asked for */
size_t memory_of(int device, void ***all); /* the device memory that programs have there: a list to be freed */
hipError_t memory_try(struct allocation *wanted); /* its address; not in the table yet */
hipError_t memory_unmake(struct allocation memory);
void memory_after_fork(void);

/* memory.c */
hipError_t memory_allocate(void **address, size_t bytes, enum kind kind, unsigned flags, struct pool *pool);
hipError_t memory_make(struct allocation *wanted); /* as memory_try, with what pools keep */
hipError_t memory_free(void *address);    /* when the device has done all that it was given */
hipError_t memory_release(void *address); /* at once */

/* malloc.c */
void memory_reset(int device);            /* free all device memory that programs have there */

/* ranges.c: what programs have advised for parts of managed memory. */
void ranges_forget(uintptr_t address, size_t bytes);
void ranges_after_fork(void);

/* mapping.c: pages of other files in the arena, in whole pages. */
size_t page_bytes(void);
hipError_t mapping_reserve(size_t bytes, uintptr_t *place); /* that kernels cannot touch */
hipError_t mapping_free(uintptr_t place);                   /* what is reserved, with nothing in it */
hipError_t mapping_enter(uintptr_t place, size_t bytes, const char *file, uint64_t offset);
hipError_t mapping_leave(uintptr_t place, size_t bytes);

/* opened.c: memory of other programs. */
#define FIRST_EVENT_ID ((uint64_t)1 << 32) /* numbers of allocations are smaller */
hipError_t handle_make(struct memory_handle *handle, uintptr_t place, size_t bytes, size_t into, uint64_t id);
bool handle_is_own(const struct memory_handle *handle);
bool handle_is_event(const struct memory_handle *handle);
hipError_t opened_open(const struct memory_handle *handle, struct pool *pool, void **address); /* in the table if it has a pool */
hipError_t opened_close(uintptr_t address);
void opened_after_fork(void);

/* virtual.c */
void virtual_after_fork(void);

/* shared_events.c: events that several programs know. */
struct shared_event;
hipError_t shared_event_make(struct shared_event **event);
hipError_t shared_event_open(struct shared_event **event, const struct memory_handle *handle);
hipError_t shared_event_describe(const struct shared_event *event, struct memory_handle *handle);
void shared_event_free(struct shared_event *event);
hipError_t shared_event_record(struct shared_event *event, struct stream *stream);
bool shared_event_done(const struct shared_event *event);
void shared_event_wait(const struct shared_event *event);
hipError_t shared_event_wait_for(struct shared_event *event, struct stream *stream);

/* registered.c, files.c, pinned.c: the program's own memory, registered. */
uintptr_t pinned_device(const void *address, uintptr_t *start); /* its address on the device, or 0; of the range too */
void pinned_after_fork(void);

/* free_lists.c: memory that pools keep to be given again. */
void pool_take_back(struct allocation memory, struct work *freed); /* takes the reference: what has to be done before */
void pools_settle(void);                   /* streams were waited for: what is above thresholds goes back to the device */
bool pools_give_back(void);                /* all that can be spared; whether there was anything */
void pools_after_fork(void);

/* announce.c: launches that were handed to the device. */
void launches_count(void);
void launches_after_fork(void);

/* modules.c */
struct argument { uint32_t offset, bytes; };
struct kernel {
    struct module *module;
    uint32_t index;
    char *name;
    uint32_t kernarg_bytes, lds_bytes, private_bytes, vgprs, sgprs, max_threads, argument_count;
    struct argument *arguments;
    bool whole_groups;    /* compiled for these alone */
    bool dynamic_lds_set; /* by hipFuncSetAttribute */
    int dynamic_lds;
};
struct variable {
    char *name; void *address; size_t bytes;
    void *managed; size_t managed_bytes; /* its memory, if it is a managed variable of a module */
};
struct module {
    uint32_t id, prints, kernel_count, variable_count;
    int device;
    struct kernel *kernels;
    struct variable *variables;
};
hipError_t module_load(struct module **module, int device, const void *image, size_t bytes);
hipError_t module_unload(struct module *module);
hipError_t module_of_memory(const void *image, struct module **module); /* of the program's own, on the current device */
hipError_t module_of_file(const char *file, struct module **module);
struct kernel *module_kernel(const struct module *module, const char *name);
struct variable *module_variable(const struct module *module, const char *name);
size_t image_bytes(const void *image);   /* of an ELF file or a bundle in memory, as its headers say; 0 for anything else */
bool image_is_known(const void *image);  /* whether it begins as one of these */
bool image_is_there(const void *image, size_t bytes);

/* registry.c */
hipError_t function_kernel(const void *function, int device, struct kernel **kernel);
hipError_t symbol_variable(const void *symbol, int device, struct variable *variable);

/* hostcalls.c */
hipError_t hostcalls_ready(void); /* before a kernel that prints is launched */

/* operations.c: what streams carry out and graphs keep. */
enum operation_kind {
    OPERATION_NOTHING, OPERATION_LAUNCH, OPERATION_COPY, OPERATION_FILL, OPERATION_CALL, OPERATION_RECORD, OPERATION_FREE
};
struct operation {
    enum operation_kind kind;
    union {
        struct {
            struct kernel *kernel; struct dim3 grid, block; uint32_t lds_bytes, cooperative, bytes; void *kernarg;
            uint32_t number, count; /* of the grids of one launch on several devices; else 0 */
            const void *function; /* what the program calls the kernel */
            struct dim3 lacking; /* work-items of the last work-groups */
        } launch;
        struct transfer {
            void *to; const void *from; size_t to_pitch, from_pitch, to_slice, from_slice, width, height, depth;
            bool pageable; /* memory that HIP does not know */
        } copy;
        struct fill { void *to; uint32_t value, element; size_t pitch, slice, count, height, depth; } fill;
        struct { void (*function)(void *); void *data; } call;
        struct { bool timed; } record;
        struct { hipError_t (*release)(void *address); void *address; } free;
    };
};
bool operation_is_near(const struct operation *operation); /* the worker can do it, too: rows of its memory */
/* `now`: all before it is done. The command is a new one if it has one. */
hipError_t operation_carry_out(const struct operation *operation, bool now, uint64_t *command);
hipError_t operation_copy(struct operation *to, const struct operation *from);
void operation_discard(struct operation *operation);

/* perform.c: put on a stream, or kept in the graph that it is captured into; what the operation holds is taken. */
hipError_t perform(stream_t stream, struct operation *operation);
hipError_t perform_and_wait(stream_t stream, struct operation *operation);

/* arrays.c */
void arrays_after_fork(void);

/* prepared_launches.c */
struct launch {
    struct kernel *kernel; struct dim3 grid, block; size_t lds_bytes; void **args, **extra; bool cooperative;
    uint32_t number, count; /* of the grids of one launch on several devices; else 0 */
    const void *function;   /* what the program calls the kernel; NULL: by its handle */
    struct dim3 lacking;    /* work-items of the last work-groups, where these are not whole */
};
#define WHOLE {0, 0, 0} /* nothing is lacking */
hipError_t launch_prepare(const struct launch *launch, struct operation *operation);

/* launches.c */
hipError_t launch_on(stream_t stream, const struct launch *launch);

/* occupancy.c: work-groups of one compute unit. */
hipError_t occupancy(struct kernel *kernel, int block_size, size_t lds_bytes, int *blocks);

/* order.c: what comes after what; called under the lock of all works. */
enum { DETOURS = 5 }; /* streams through which that is followed */
void order_note(struct stream *stream, uint64_t at, const struct stream *other, uint64_t number);
void order_forget(struct stream *stream, const struct stream *other);
void order_clear(struct stream *stream);
bool order_holds(const struct stream *stream, uint64_t number, const struct stream *other, uint64_t earlier, unsigned detours);

/* work.c: operations on streams. References are counted; places hold one, or NULL for what is finished. */
struct work;
/* Takes what the operation holds. `after`: another work that it comes after, or NULL. `made` gets a reference. */
hipError_t work_put(struct stream *stream, struct operation *operation, struct work *after, bool wait, struct work **made);
bool work_finished(struct work *const *place);
/* Whether what is put on a stream next comes after it, `across`: also by way of other streams. */
bool work_precedes(struct work *const *place, const struct stream *stream, bool across);
hipError_t work_await(struct work *const *place);
struct work *work_hold(struct work *const *place);
void work_exchange(struct work **place, struct work *work); /* takes `work`, lets the one that was there go */
uint64_t work_time(struct work *const *place); /* nanoseconds when an event was recorded */
void work_after_fork(void);
void stream_begin(struct stream *stream); /* until stream_end nobody else puts anything on it */
void stream_end(struct stream *stream);
void stream_enter(struct stream *stream);
void stream_leave(struct stream *stream); /* nothing is left on it */
bool stream_finished(const struct stream *stream); /* and all that its next operation would come after */
hipError_t streams_await(int device); /* all that is on streams of a device now; -1: of all devices */

/* waits.c: as programs wait, after which pools settle. */
hipError_t work_wait(struct work *const *place);
hipError_t stream_wait(struct stream *stream);
hipError_t streams_wait(int device); /* as streams_await */

struct stream {
    unsigned flags;
    int priority, device;
    uint64_t id;
    struct capture *capture; /* that it is part of, or NULL */
    struct stream *captured; /* the next stream of that */
    struct nodes tails;      /* of what is recorded: the next node comes after these */
    uint32_t *mask, mask_words; /* of compute units; NULL: all */
    int policy;              /* how programs wait for it, if they said so */
    /* The rest is steps.c's, drivers.c's and work.c's. */
    pthread_mutex_t turn;     /* of those who put something on it; taken before the lock of all works */
    struct stream *next, *next_waiting;
    struct work *first, *end; /* what has not passed */
    struct work *last;        /* that was put on it */
    bool driven;
    uint64_t command;          /* of all that has passed */
    struct origin *origins;   /* order.c's */
    size_t origin_count, origin_next;
};
/* default_streams.c */
struct stream *stream_null(int device);    /* the default one */
bool stream_is_null(const struct stream *stream);
bool stream_is_blocking(const struct stream *stream);

/* streams.c */
struct stream *stream_of(stream_t handle); /* NULL if it is none */
int stream_device(stream_t handle);        /* the current one if it is none */
void streams_reset(int device);            /* destroy those that programs have made */
bool default_stream_of_thread(bool on);    /* what NULL means here from now on; gives what it meant */

/* recorded.c */
hipError_t event_wait_for(struct stream *stream, event_t event);
hipError_t event_record_on(struct stream *stream, event_t event); /* also while it is captured */

/* nodes.c */
hipError_t nodes_add(struct nodes *nodes, struct node *const *more, size_t count);
void nodes_clear(struct nodes *nodes);

/* node_memory.c: memory that graphs allocate. */
bool graph_memory_free(void *address, struct stream *stream, hipError_t *error); /* NULL: waits; false: no graph names it */

/* reservations.c */
bool reservations_settle(void); /* what nobody uses goes back to the device; whether there was anything */
void reservations_after_fork(void);

/* captures.c: what is put on a stream that is captured becomes a node. */
hipError_t capture_operation(struct stream *stream, struct operation *operation); /* takes what it holds */
hipError_t capture_graph(struct stream *stream, const struct graph *executable);
hipError_t capture_event(struct stream *stream, event_t event, bool waits); /* else it is recorded */
hipError_t capture_allocation(struct stream *stream, size_t bytes, void **address);
hipError_t capture_release(struct stream *stream, void *address);
unsigned long long capture_number(const struct stream *stream);    /* never used again; 0: it is not captured */
bool capture_goes_on(unsigned long long number, bool make_invalid);
hipError_t capture_join(unsigned long long number, const struct nodes *after, struct stream *stream); /* capture it too */
void capture_leave(struct stream *stream);
void captures_after_fork(void);
hipError_t capture_forbids_asking(const struct stream *stream); /* whether it is done, or waiting for it */
hipError_t capture_forbids_waiting(void);  /* for all streams */
hipError_t check_unsafe(void);             /* words of functions.txt */
hipError_t check_legacy(void);
hipError_t check_recorded(stream_t stream); /* capture.c */
hipError_t check_images(void);             /* textures.c: does this device have images? */

#endif
