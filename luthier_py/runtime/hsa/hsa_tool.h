/* The tool at the level of HSA: what its files share.
 *
 * loaded.c is given ROCr's tables and puts ours into them; objects.c knows the program's kernels by their descriptors'
 * addresses; instances.c loads the copies; packets.c rewrites what is put on queues; flights.c waits for launches whose
 * results are wanted, and reads them. What is the same for HIP and HSA is in runtime/tool.
 */
#ifndef LUTHIER_HSA_TOOL_H
#define LUTHIER_HSA_TOOL_H

#include <pthread.h>

#include "hsa.h"
#include "tool.h"

#define API __attribute__((visibility("default")))

/* loaded.c: ROCr's own functions, and whether they may be called. */
struct runtime {
#define FIELD(place, result, name, parameters) result(*name) parameters;
    CORE_FUNCTIONS(FIELD) AMD_FUNCTIONS(FIELD)
#undef FIELD
    struct loader loader;
};
extern struct runtime rocr;
extern atomic_bool runtime_there; /* from OnLoad to OnUnload */

/* objects.c */
struct image; /* a code object, as it was loaded on an agent */
struct kernel {
    struct kernel *next, *next_of_image;
    uint64_t object; /* its descriptor's address: the packet's kernel_object */
    struct image *image;
    char *name;
    bool own;        /* of the HIP runtime, and not of the program */
    uint32_t private_bytes, group_bytes;
    pthread_mutex_t lock; /* of what follows */
    bool asked, selected, explained;
    struct clone clone;   /* without a name where the original is to run */
    struct instance *instances;
};
struct kernel *kernel_at(uint64_t object);
hsa_agent_t image_agent(const struct image *image);
uint32_t image_number(const struct image *image);
int image_device(const struct image *image);   /* the agent's number among the GPUs */
uint64_t image_delta(const struct image *image); /* what loading has added to addresses */
bool image_send(struct image *image);          /* to the worker, once; its kernel is locked */
void kernels_each(void (*action)(struct kernel *kernel));
void objects_drop(void);
hsa_status_t tool_executable_freeze(hsa_executable_t executable, const char *options);
hsa_status_t tool_executable_destroy(hsa_executable_t executable);

/* instances.c: a copy that is loaded, with variables of its own. Where each launch is asked for, each queue that
 * launches the kernel has an instance: launches of one never wait for those of another. */
struct tool_variable { void *address; size_t bytes; };
struct shape { uint32_t grid[3], block[3]; };
struct queue;
struct instance {
    struct instance *next;
    struct kernel *kernel;
    const struct queue *queue; /* NULL: of all, or free */
    hsa_executable_t executable;
    hsa_reader_t reader;
    uint64_t object;
    uint32_t private_bytes, group_bytes;
    struct tool_variable *variables;
    uint32_t variable_count;
    struct gate *gate;        /* the last launch's: the next one goes through it */
    unsigned long unread, last_index;
    struct shape last;
};
struct instance *instance_for(struct kernel *kernel, const struct queue *queue); /* NULL: the original is to run */
void instance_note(struct instance *instance, unsigned long index, const struct shape *shape);
void instance_read(struct instance *instance, uint32_t launches, unsigned long index, const struct shape *shape);
void instances_send(struct kernel *kernel); /* what was not read yet */
void instances_drop(struct kernel *kernel);
void instances_leave(const struct queue *queue);

/* packets.c */
hsa_status_t tool_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type, queue_error *error, void *data,
                               uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t **queue);
hsa_status_t tool_queue_destroy(hsa_queue_t *queue);
void queues_drain(void); /* until everything that is on them now is done, or seems never to be */
void queue_passed(struct queue *queue, uint64_t packets); /* so many of those written have begun */

/* gates.c: a gate is a signal that becomes 0 when a launch's results were read. It stays while something refers to it. */
struct gate;
struct gates { struct gate **at; size_t count, room; };
struct gate *gate_new(hsa_agent_t agent); /* shut, with one reference; NULL: there is none */
void gate_open(struct gate *gate);
bool gate_shut(const struct gate *gate);
hsa_signal_t gate_signal(const struct gate *gate);
struct gate *gate_keep(struct gate *gate);
void gate_leave(struct gate *gate); /* NULL is none */
bool gates_add(struct gates *gates, struct gate *gate); /* keeps it; not one that is there, or open; false: no memory */
void gates_clear(struct gates *gates);
void gates_drop(void); /* signals that nothing refers to */

/* flights.c: launches from their packet until their results are read. */
struct flight {
    struct flight *next, *previous, *next_done;
    struct instance *instance;
    struct queue *queue;
    uint64_t packets; /* written before it */
    hsa_signal_t done, application;
    struct gate *gate;
    unsigned long index;
    struct shape shape;
};
/* Before its packet is written, which is to have `done` as its signal; NULL: there are no signals. */
struct flight *flight_start(const struct flight *about);
bool flights_wait(const struct kernel *kernel); /* until none is left of that kernel, or at all; false: one seems to stay */
bool flights_of(const struct queue *queue);
void flights_drop(void);

enum { PATIENCE_SECONDS = 10 }; /* for what may never come */

#endif
