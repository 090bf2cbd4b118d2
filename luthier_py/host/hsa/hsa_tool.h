/* The tool at the level of HSA: what its files share.
 *
 * From below: rocr.c has ROCr's functions; driver.c and awaited.c, the thread that reads, call them; objects.c finds
 * the program's kernels by their descriptors' addresses; dependencies.c has what waits for results, instances.c loads
 * the copies, in_flight.c has launches whose results are read one by one; backlog.c limits what is put on a queue,
 * packets.c rewrites it; queues.c and executables.c are what the program calls, loaded.c gets ROCr's tables and puts
 * these into them. What is the same for HIP and HSA is in host/tool.
 */
#ifndef LUTHIER_HSA_TOOL_H
#define LUTHIER_HSA_TOOL_H

#include <pthread.h>

#include "driver.h"
#include "hsa.h"

#define API __attribute__((visibility("default")))

/* rocr.c: ROCr's own functions, and whether they may be called. */
struct runtime {
#define FIELD(place, result, name, parameters) result(*name) parameters;
    CORE_FUNCTIONS(FIELD) AMD_FUNCTIONS(FIELD)
#undef FIELD
    struct loader loader;
};
extern struct runtime rocr;
extern atomic_bool runtime_there; /* from OnLoad to OnUnload */
enum {
#define PLACE(place, result, name, parameters) AT_##name = place,
    CORE_FUNCTIONS(PLACE) AMD_FUNCTIONS(PLACE)
#undef PLACE
};
bool rocr_has(const struct table *table, size_t place);
bool rocr_take(const struct tables *tables); /* false: something is missing, and it has printed what */

/* objects.c */
struct image { /* a code object, as it was loaded on an agent */
    struct image *next;
    hsa_executable_t executable;
    hsa_agent_t agent;
    int device;     /* the agent's number */
    struct code_object object;
    void *data;     /* a copy */
    uint64_t delta, base, size; /* `delta`: what loading has added to addresses */
    struct kernel *kernels;
    pthread_mutex_t lock;
};
struct kernel {
    struct kernel *next, *next_of_image;
    uint64_t object; /* its descriptor's address: the packet's kernel_object */
    struct image *image;
    char *name;
    bool own;        /* of the HIP runtime, and not of the program */
    uint32_t private_bytes, group_bytes;
    pthread_mutex_t lock; /* of what follows */
    bool known;           /* the worker has answered */
    struct asked asked;
    struct instance *instances;
};
struct kernel *kernel_at(uint64_t object);
enum answer image_ask(struct image *image, const char *kernel, struct asked *asked); /* its kernel is locked */
void kernels_each(void (*action)(struct kernel *kernel));
bool objects_note(hsa_executable_t executable); /* false: ROCr does not say what is loaded */
struct image *objects_take(hsa_executable_t executable, bool any); /* and its kernels; look-ups no longer find it */
struct kernel *image_take_kernel(struct image *image); /* NULL: there are no more */
void image_free(struct image *image);          /* the worker forgets it */

/* driver.c: what the tool lets HSA do. */
int agent_number(hsa_agent_t agent); /* among the GPUs; negative: it is none, or there are more than we look at */
bool find_symbol(hsa_executable_t executable, int device, const char *name, const char *suffix, hsa_symbol_t *symbol);

/* instances.c: a copy that is loaded, with its variables. Where each launch is reported, each queue that launches the
 * kernel has an instance: launches of one never wait for those of another. */
struct dependencies { struct dependency **at; size_t count, room; };
struct queue;
struct instance {
    struct loaded loaded;
    struct instance *next;
    struct kernel *kernel;
    const struct queue *queue; /* NULL: of all, or free */
    hsa_executable_t executable;
    hsa_reader_t reader;
    uint64_t object;
    uint32_t private_bytes, group_bytes;
    struct dependency *dependency;        /* the last launch's: the next one goes through it */
};
struct instance *instance_for(struct kernel *kernel, const struct queue *queue); /* NULL: the original is to run */
/* Before a launch, when no other one of the instance runs. */
void instance_begin(const struct instance *instance, const struct told_of *launch, const struct launch_memory *memory);
void instance_note(struct instance *instance, struct told_of *launch);
/* After it: its values are read, and the next one finds the variables as they were loaded. */
void instance_end(const struct instance *instance, const struct told_of *launch, const struct launch_memory *memory);
void instances_send(struct kernel *kernel); /* what was not read yet */
void instances_drop(struct kernel *kernel);
void instances_leave(const struct queue *queue);

/* backlog.c: a queue of the program's, and how much of what is written to it the device has taken. */
struct batch { union packet *at; size_t count, room; };
struct queue {
    struct queue *next;
    hsa_queue_t *handle;   /* the program's; ROCr has another one of the same size behind it */
    hsa_agent_t agent;
    bool single;           /* one thread alone puts packets on it */
    bool shared;           /* cooperative: ROCr's own, which it lends */
    queue_error *error;    /* the program's */
    void *data;
    atomic_bool dead, used, gone; /* it failed; copies were launched on it; it was destroyed */
    atomic_uint references; /* the list's, and those of markers */
    pthread_mutex_t use;   /* of its handle, by us: the program does not destroy it meanwhile */
    struct dependencies pending;  /* of launches that a barrier bit comes after */
    struct batch backlog;  /* packets that did not fit yet */
    uint64_t made, given, marked; /* packets: of all, to ROCr, and before the last marker */
    atomic_ulong taken;    /* by the device, as far as is known */
    atomic_bool behind;    /* there is a backlog, or was */
    bool unmarked;         /* no marker could be made: nothing is held back */
    struct passing *first, **last; /* dependencies that packets wait at which may not have been taken */
    pthread_mutex_t lock;  /* of these two */
};
void queue_leave(struct queue *queue); /* drop a reference */
bool batch_reserve(struct batch *batch, size_t more);
void queue_add(struct queue *queue, const union packet *packet); /* there is room in the backlog */
bool queue_put_barrier(struct queue *queue, uint16_t bits, hsa_signal_t done); /* from the program's side */
void queue_mark(struct queue *queue); /* a packet that reports when all before it were taken, if one is due */
void queue_give(struct queue *queue, packet_writer *write); /* as much of the backlog as fits */
void pause_a_little(void);

/* packets.c */
packet_handler rewrite_packets;

/* queues.c */
hsa_status_t tool_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type, queue_error *error, void *data,
                               uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t **queue);
hsa_status_t tool_queue_destroy(hsa_queue_t *queue);
void queues_drain(void); /* until everything that is on them now is done, or seems never to be */

/* executables.c */
hsa_status_t tool_executable_freeze(hsa_executable_t executable, const char *options);
hsa_status_t tool_executable_destroy(hsa_executable_t executable);
void executables_drop(void);

/* awaited.c: something is done when its signal says so; a thread of ours does what is to be done then. */
struct awaited {
    struct awaited *next;
    hsa_signal_t done;
    void (*action)(struct awaited *awaited); /* owns it from then on; the signal is returned before */
    int64_t start, end;                      /* of what was done */
};
bool await(struct awaited *awaited); /* gives it a signal; false: there is none */
void awaited_drop(void);

/* dependencies.c: a dependency is a signal that becomes 0 when a launch's results were read. It stays while something refers to it. */
struct dependency;
struct dependency *dependency_new(hsa_agent_t agent); /* shut, with one reference; NULL: there is none */
void dependency_open(struct dependency *dependency);
bool dependency_shut(const struct dependency *dependency);
hsa_signal_t dependency_signal(const struct dependency *dependency);
struct dependency *dependency_keep(struct dependency *dependency);
void dependency_leave(struct dependency *dependency); /* NULL is none */
bool dependencies_add(struct dependencies *dependencies, struct dependency *dependency); /* keeps it; not one that is there, or open; false: no memory */
void dependencies_clear(struct dependencies *dependencies);
void dependencies_drop(void); /* signals that nothing refers to */
void dependency_note(struct queue *queue, struct dependency *dependency); /* the next packet waits at it */
void dependencies_passed(struct queue *queue, uint64_t packets); /* so many of those made were taken */

/* in_flight.c: launches from their packet until their results are read. */
struct in_flight {
    struct awaited awaited; /* first */
    struct in_flight *next, *previous;
    struct instance *instance;
    hsa_signal_t application;
    struct dependency *dependency;
    struct told_of launch;
    struct launch_memory *memory; /* NULL: none of its variables is as large as it */
    bool landed; /* its results were read */
};
/* Before its packet is written, which is to have its signal; NULL: there are no signals. */
struct in_flight *in_flight_start(const struct in_flight *about);
bool in_flight_wait(const struct kernel *kernel); /* until none is left of that kernel, or at all; false: one seems to stay */

enum { PATIENCE_SECONDS = 10 }; /* for what may never come */

#endif
