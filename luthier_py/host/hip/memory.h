/* Memory: what programs have, how it is allocated and freed. */
#ifndef LUTHIER_MEMORY_H
#define LUTHIER_MEMORY_H

#include "luthier.h"

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
enum { MEMORY_OF_KERNELS = 1 << 30 };     /* a flag: what kernels have allocated */
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

/* arrays.c */
void arrays_after_fork(void);

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

/* registrations.c, pinned.c: the program's own memory, registered. */
uintptr_t pinned_device(const void *address, uintptr_t *start); /* its address on the device, or 0; of the range too */
void pinned_after_fork(void);

/* free_lists.c: memory that pools keep to be given again. */
void pool_take_back(struct allocation memory, struct work *freed); /* takes the reference: what has to be done before */
void pools_settle(void);                   /* streams were waited for: return what is above thresholds to the device */
bool pools_give_back(void);                /* all that can be spared; whether there was anything */
void pools_after_fork(void);

/* node_memory.c: memory that graphs allocate. */
bool graph_memory_free(void *address, struct stream *stream, hipError_t *error); /* NULL: waits; false: no graph names it */

/* reservations.c */
bool reservations_settle(void); /* return what is unused to the device; whether there was anything */
void reservations_after_fork(void);

#endif
