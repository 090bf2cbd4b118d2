/* The program's side of an emulated AMD GPU driver: calls for /dev/kfd, /dev/dri/renderD* and sysfs come here.
 *
 * From below: nodes.c has the descriptors, pages.c the memory that both sides see, for which native/hold.c stops
 * threads that write to pages being exchanged, and lasting.c lists those that stay; native/mapped.c reads
 * /proc/self/maps, events.c has words in that memory; driver.c exchanges messages with the worker; memory.c has memory
 * of the program and of other processes; svm.c shares the program's pages with the worker until they are unmapped;
 * waits.c waits for events, doorbells.c polls the doorbells of queues; ioctls.c sends ioctls to the worker, calls.c
 * redirects files and resets a child of fork. Of an ioctl's meaning only the part for this process is here.
 */
#ifndef LUTHIER_KFD_H
#define LUTHIER_KFD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "kfd_protocol.h"
#include "mapped.h"
#include "wire.h"

#define API __attribute__((visibility("default")))
/* The C library's own function behind one of ours. */
#define REAL(name)                                                              \
    ({                                                                          \
        static _Atomic(__typeof__(&name)) found_;                               \
        if (!found_)                                                            \
            found_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                \
        found_;                                                                 \
    })

enum { KFD_NODE = -1, NO_NODE = -2, FIRST_RENDER = 128 };

/* Of linux/kfd_ioctl.h, what is looked at here: numbers and arguments. */
enum {
    CREATE_QUEUE = 0x02, DESTROY_QUEUE = 0x03, CREATE_EVENT = 0x08, DESTROY_EVENT = 0x09, SET_EVENT = 0x0a, RESET_EVENT = 0x0b,
    WAIT_EVENTS = 0x0c, SET_CU_MASK = 0x0f, GET_TILE_CONFIG = 0x12, GET_PROCESS_APERTURES_NEW = 0x14,
    ALLOC_MEMORY_OF_GPU = 0x16, FREE_MEMORY_OF_GPU = 0x17, MAP_MEMORY_TO_GPU = 0x18, UNMAP_MEMORY_FROM_GPU = 0x19,
    GET_DMABUF_INFO = 0x1c,
    SVM = 0x20, RUNTIME_ENABLE = 0x25, /* from Linux 6.5 on */
    IPC_IMPORT_HANDLE = 0x80, DBG_TRAP = 0x82, /* of ROCm's own driver */
};
struct create_queue {
    uint64_t ring, write_pointer, read_pointer, doorbell_offset;
    uint32_t ring_bytes, gpu, type, percentage, priority, queue;
    uint64_t others[4];
};
struct create_event { uint64_t page; uint32_t trigger_data, type, auto_reset, node, event, slot; };
struct event_data { char data[32]; uint64_t extension; uint32_t event, unused; };
struct wait_events { uint64_t events; uint32_t count, all, milliseconds, result; };
struct import_handle { uint64_t handle, address, offset; struct { uint32_t worker, place[2], pages; } shared; uint32_t gpu, flags; };
struct alloc_memory { uint64_t address, bytes, handle, offset; uint32_t gpu, flags; };
struct svm { uint64_t start, bytes; uint32_t operation, count; };
enum { SVM_SET, SVM_GET };
enum { WAIT_COMPLETE, WAIT_TIMEOUT, WAIT_FAIL };
enum { USER_POINTER = 4 }; /* of alloc_memory.flags: offset is the program's address */

/* nodes.c */
bool node_add(void);                    /* the next: /dev/kfd, then the render nodes */
int node_open(int node, int flags);     /* a descriptor, or -1 with errno */
int node_behind(int fd);                /* a descriptor's node, NO_NODE if it is not ours */
int nodes_gpus(void);
void nodes_after_fork(void);

/* pages.c */
bool arena_make(void);
void arena_thunk(const void *caller);    /* code of a library that has opened the driver: it reserves in the arena */
int arena_file(void);
bool arena_is_file(dev_t device, ino_t inode);
bool arena_has(const void *address);
void arena_after_fork(void);
struct control { _Atomic uint32_t doorbell; };
struct control *control(void);          /* NULL: there is no driver, or this is a child of fork */
int pages_share(uint64_t handle, uintptr_t start, size_t bytes); /* 0 or an errno */
void pages_give_back(uint64_t handle);
int pages_keep(uintptr_t start, uintptr_t end, const struct mapping *found); /* until they are unmapped: 0 or an errno */
void pages_forget(uintptr_t start, uintptr_t end); /* what was unmapped */

/* lasting.c */
bool lasting_has(uintptr_t address);
bool lasting_add(uintptr_t start, uintptr_t end, const struct mapping *mapping); /* false: no memory */
void lasting_sweep(void (*with)(uintptr_t start, uintptr_t end)); /* of what is mapped no more, or in another way */
void lasting_after_fork(int (*let_go)(uintptr_t start, size_t bytes));

/* memory.c */
bool read_safely(void *to, const void *from, size_t bytes); /* of this process, whatever the addresses are */
bool write_safely(void *to, const void *from, size_t bytes);
int file_share(uint64_t handle, uintptr_t start, size_t bytes); /* 0 or an errno; -1: it is no file's that others may map */
int pages_import(uintptr_t address, size_t bytes, uint32_t worker, uint64_t place); /* of another process: 0 or an errno */

/* events.c */
void events_lost(void);                 /* the device is lost: wake threads that wait for faults */

/* driver.c */
bool driver_wanted(void);               /* LUTHIER_DEVICE names an emulated device, and this is its driver */
bool driver_ready(void);                /* and it is there; starts it, and says on stderr why it cannot be */
bool driver_ended(void);                /* after that, or when its worker is gone */
const char *driver_files(void);         /* files that replace sysfs; NULL: none do. All that our HIP runtime needs */
int driver_open(int node, int flags, const void *caller); /* as node_open, for a caller whose device there is */
void driver_tell(uint32_t code, const struct part *parts, int count);
bool driver_ask(uint32_t code, const struct part *parts, int count, struct reply *reply); /* false: it is gone */
int driver_ask_file(uint32_t code, const void *head, size_t bytes, const char *name); /* 0 or an errno */
void driver_after_fork(void);

/* svm.c */
int svm_prepare(const struct svm *asked); /* before the request to the worker: 0 or an errno */
void svm_sweep(void);                     /* report to the worker what the program has unmapped */
void svm_after_fork(void);

/* waits.c */
int event_ioctl(unsigned number, void *args); /* 0 or an errno; -1: not about events */
void waits_after_fork(void);

/* doorbells.c */
void doorbells_watch(uint32_t queue, uint32_t doorbell, uint64_t write_pointer);
void doorbells_forget(uint32_t queue);
void doorbells_debug(const void *r_debug);  /* ROCr's list of loaded code objects */
void doorbells_after_fork(void);

#endif
