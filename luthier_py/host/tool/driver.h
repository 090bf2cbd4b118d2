/* One interface, two drivers: what a level (HIP: host/preload, HSA: host/hsa) reports to the tool and does for it.
 *
 * The driver sees the program's calls. It reports code objects, launches and their ends, and carries out what is
 * decided here: what a kernel's copy is, what its variables hold before a launch, and what is read of them after it.
 * From below: code_objects.c requests copies from the worker, launch_memory.c has memory of single launches, copies.c a
 * copy's variables; channels.c empties the rings of channels.
 */
#ifndef LUTHIER_DRIVER_H
#define LUTHIER_DRIVER_H

#include "tool.h"

/* code_objects.c: the program's code objects, each sent to the worker once for each device. */
struct sent;
struct code_object { uint32_t number; const void *data; size_t bytes; struct sent *sent; };
/* What the worker makes of a kernel; `made` has no name where the original is to run. */
struct asked {
    bool selected;  /* by its name */
    bool explained; /* the worker says why there is no copy */
    struct clone made;
};

/* copies.c: a copy that the driver has loaded, with its variables. The driver's structure begins with it. */
struct loaded {
    const char *kernel;
    uint32_t image; /* the code object's number */
    int device;
    struct original original;
    struct tool_variable *variables;
    uint32_t variable_count;
    bool begins;    /* each launch's begin is reported to the worker: there are channels or parameters */
    bool sized;     /* each launch has memory: variables as large as it, or a table of what it may access */
    size_t bytes;   /* of the variables that are read */
    char *values;   /* room for these */
    struct told_of unread; /* launches that have added to its variables since these were read */
};

/* launch_memory.c: a launch's, for one variable of its copy. */
struct launch_memory {
    void *at;
    size_t bytes;
    void *content; /* what is in it at first; NULL: zeros */
    bool ordered;  /* the driver's: allocated and freed in the order of a stream */
};

/* A turn is a launch's place among others: HIP's stream; NULL at HSA, where it is the moment of the call. */
struct driver {
    /* A device, in the form of the properties: FORM_* of protocol.py; false: unknown. */
    bool (*describe)(int device, uint32_t *form, char properties[static PROPERTIES_BYTES]);
    /* A variable that the worker has declared: its address, size and what it is set to between launches. */
    bool (*find)(const struct loaded *copy, const struct declared *declared, struct tool_variable *variable);
    /* At once. */
    bool (*write)(void *to_device, const void *from, size_t bytes);
    bool (*read)(void *to, const void *from_device, size_t bytes);
    /* In a launch's turn: so many words, or a variable's initial content. */
    bool (*set)(void *to_device, const uint32_t *words, size_t count, void *turn);
    bool (*reset)(const struct tool_variable *variable, void *turn);
    /* Memory for a launch, with its content, until it was read; if only the content fails, it is released as well. */
    bool (*allocate)(struct launch_memory *memory, int device, void *turn);
    void (*release)(struct launch_memory *memory, int device, void *turn);
    /* What the launch may access, for the cell, to be freed (clone_allocations); NULL: the level does not know it. */
    void *(*table)(const struct loaded *copy, const struct told_of *launch, const void *cell, size_t *bytes);
    /* Memory of the host, to read to. */
    void *(*buffer)(int device, size_t bytes);
    void (*free_buffer)(void *buffer);
    /* Memory of channels: the device's, and the host's, fine-grained, which the device sees at the same address. */
    void *(*device)(int device, size_t bytes);
    void *(*shared)(int device, size_t bytes);
    void (*free_device)(void *memory);
    void (*free_shared)(void *memory);
    /* Send what was read to the worker: clone_counted, in its order among reports sent in other ways. */
    void (*counted)(const struct told_of *launch, const void *values, size_t bytes);
};
void drive_by(const struct driver *level);
const struct driver *driver(void);

/* Whether each launch has memory for it. */
static inline bool has_memory(const struct tool_variable *variable)
{
    return variable->role == SIZED || (variable->role == TABLE && driver()->table && settings.per_launch);
}

/* A code object was loaded: its number. */
uint32_t code_object_number(void);
/* A kernel of it is launched for the first time on a device. The caller keeps other threads from requesting of the same
 * object. */
enum answer kernel_ask(struct code_object *object, int device, const char *kernel, struct asked *asked);
void code_object_forget(struct code_object *object); /* here and in the worker, as if it were new */

/* A copy was loaded: find its variables and connect channels to their rings. False: it must not be launched. */
bool copy_open(struct loaded *copy, const struct clone *made);
void copy_close(struct loaded *copy);
/* A launch of a copy. */
struct told_of copy_told(const struct loaded *copy, unsigned long index, const struct shape *shape);
/* Before it: memory by variable, until memory_end; NULL: it runs as it is, and the reason was printed. */
struct launch_memory *memory_begin(const struct loaded *copy, const struct told_of *launch, void *turn);
void memory_end(const struct loaded *copy, struct launch_memory *memory, void *turn);
/* Its turn has come: its variables get its number, its parameters and where its memory is (NULL: it has none). */
bool copy_begin(const struct loaded *copy, const struct told_of *launch, const struct launch_memory *memory, void *turn);
bool copy_clear(const struct loaded *copy, void *turn); /* clear what is read of launches: before one, or after it */
/* It has ended: read its values and send them to the worker. */
bool copy_read(const struct loaded *copy, const struct told_of *launch, const struct launch_memory *memory);
/* Or it adds to others, which are read later; takes its ranges. Several launches have the ranges that all were in. */
void copy_note(struct loaded *copy, struct told_of *launch);
bool copy_send(struct loaded *copy, const struct launch_memory *memory); /* what was noted */

/* channels.c: where the head of a channel's ring is on a device; NULL: there is no memory. */
void *channel_head(const struct declared *about, int device);
void channels_flush(int device); /* whose launches are done: send all that they pushed to the worker */
void channels_drop(void);        /* the tool ends, and none of its kernels runs */

#endif
