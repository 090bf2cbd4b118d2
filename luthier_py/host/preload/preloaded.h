/* The LD_PRELOAD tool at the level of HIP: what its files share.
 *
 * From below: runtime.c finds the runtime's functions; captured.c tracks captures, images.c the program's code objects;
 * copies.c loads the instrumented copies of their kernels, sized.c allocates memory for their launches; allocated.c
 * tracks the program's memory and fills new memory; counted.c launches copies, reports.c sends their reports,
 * collected.c reads what they have counted; driver.c carries out what host/tool decides; known.c maps handles to code
 * objects; graphed.c has graphs, changed.c their changes, launched.c launches; ranges.c stores the program's ranges,
 * marks.c intercepts the calls that mark them; interpose.c puts our functions before the runtime's, redirect.c does so
 * in a runtime that was loaded without us. What is the same for HIP and HSA is in host/tool.
 */
#ifndef LUTHIER_PRELOADED_H
#define LUTHIER_PRELOADED_H

#include "driver.h"
#include "luthier.h"

/* runtime.c: the runtime's own function of that name; NULL when there is none, or the process ends with one line. */
void *real_function(const char *name);
void *required_function(const char *name);
#define REAL(name)                                                              \
    ({                                                                          \
        static _Atomic(__typeof__(&name)) found_;                               \
        if (!found_)                                                            \
            found_ = (__typeof__(&name))required_function(#name);               \
        found_;                                                                 \
    })
struct own_function { const char *name; void *function; };
void use_functions(const struct own_function *functions, size_t count); /* REAL looks at these first */
void use_runtime(void *handle); /* of dlopen: look there */
void *used_runtime(void);
void *loaded_runtime(void);     /* for dlsym; NULL: there is none */
typedef void *dlsym_function(void *, const char *);
dlsym_function *next_dlsym(void); /* the C library's */
void restore_error(hipError_t before); /* hides errors of our own calls since then from the program */

/* known.c: what a function's address or a kernel's handle means. */
struct meaning { const void *key; struct image *image; char *name; };
struct meaning meaning_of(const void *key);
void expect_handle(const void *function); /* a function in a graph, for which the graph may later show its handle */
struct image *image_of(const void *key, const char **name);

/* images.c: code objects of the program. */
struct image;
/* `bytes` 0: as many as its headers say; NULL if unknown. `lasting`: the data outlive all launches of it, as those of a
 * library do, which may be gigabytes; else they are copied. */
struct image *image_new(const void *data, size_t bytes, bool lasting);
void image_loaded(struct image *image, struct module *module); /* it is this module of the program */
bool image_module(const struct image *image);                  /* it was loaded as a module */
/* A variable of a registered fat binary: its host symbol, or for a managed one the pointer to its memory. */
void image_variable(struct image *image, const char *name, void *symbol, bool managed);
void image_lock(struct image *image);
void image_unlock(struct image *image);

/* copies.c: copies of their kernels. */
struct launch_shape {
    struct dim3 grid, block; unsigned lds_bytes; stream_t stream; void **args, **extra; bool cooperative;
    struct dim3 lacking; /* work-items of the last work-groups, where these are not whole */
};
static inline bool is_whole(const struct launch_shape *s) { return !(s->lacking.x || s->lacking.y || s->lacking.z); }
/* A kernel on one device, once it was launched there; `clone` is NULL where the original is to run. */
struct copy {
    struct loaded loaded;
    struct copy *next;
    struct copy *beside; /* a further copy, with separate variables, for simultaneous launches on other streams */
    bool is_beside;      /* it is another's `beside` */
    struct image *image;
    char *name;
    struct asked asked; /* with the module's code: ROCm's runtimes and debuggers read it while the module is loaded */
    struct module *module;
    struct kernel *clone;
    struct launch_memory *memory; /* of the launch in flight: one at a time, since each is waited for */
    uint64_t told;   /* slots up to its last report, and that report's stream */
    stream_t told_on;
    unsigned long told_before; /* streams destroyed before it */
};
struct copy *copy_of(struct image *image, const char *name, int device); /* the image is locked */
/* It, or a further copy, whose variables no launch on another stream uses; NULL: there is none and none can be made. */
struct copy *copy_free(struct copy *copy, stream_t stream);
void copies_forget(struct image *image); /* which is locked: all the tool's data about it */

/* counted.c */
__typeof__(&hipExtModuleLaunchKernel) real_with_items(void);
int device_of(stream_t stream);
/* Launch the clone of an image's kernel, selected under this number; false when the original is to run instead. */
bool tool_launch(struct image *image, const char *kernel, unsigned long index, const struct launch_shape *shape, hipError_t *error);
/* A launch that begins now on this thread, in the thread's ranges; the caller frees their names. */
struct told_of launch_told(const struct copy *copy, unsigned long index, const struct launch_shape *shape);
/* Before a launch: clear variables, if each launch is reported, set them, and allocate its memory, until `launch_ends`.
 * False: the launch runs as it is, without memory. */
bool launch_prepare(struct copy *copy, const struct told_of *launch, stream_t stream);
void launch_ends(struct copy *copy, stream_t stream);
void send_results(struct copy *copy); /* when the device has done its launches; its image is locked */

/* sized.c: memory of launches. */
bool sized_allocate(struct launch_memory *memory, int device, void *stream);
void sized_release(struct launch_memory *memory, int device, void *stream);
void sized_drop(void); /* the tool ends, and none of its launches is left */

/* allocated.c: memory that kernels may access. */
void allocations_missed(void); /* there may be unseen ones */
void allocations_managed(void **pointer, size_t bytes);
void *allocations_table(const struct loaded *copy, const struct told_of *launch, const void *cell, size_t *bytes); /* NULL: not known */

/* reports.c: reports of single launches for which no thread waits. */
/* Whether the variables of a launch on this stream are in use by one on another stream that does not end. */
bool told_elsewhere(const struct copy *copy, stream_t stream);
bool told_later(struct copy *copy, const struct told_of *launch, stream_t stream); /* true: call `told` or `told_not` */
bool told(struct copy *copy, const struct told_of *launch, stream_t stream); /* false: wait for the launch */
void told_not(void); /* it did not begin */
/* Report a launch that was waited for, after all others. */
void told_waited(const struct told_of *launch, const void *values, size_t bytes);
void told_stream_gone(void);
void told_settle(void); /* until the worker has all of them */
void told_drop(void);   /* the tool ends */
/* Our own runtime calls it when it is loaded. `file`: in which its memory is, and where; `failed`: no launch ends any
 * more. */
API void luthier_tool_memory(int (*file)(const void *address, uint64_t *offset), bool (*failed)(void));

/* given.c: arguments of launches, for tools that request them. */
void given_keep(const struct copy *copy, struct told_of launch, const struct launch_shape *shape); /* takes its ranges */
hipError_t given_tell(hipError_t error); /* the launch whose arguments this thread saved has begun, or failed */
void given_drop(void);

/* collected.c */
void image_unloaded(struct image *image);
void copies_collect(void);
void copies_drop(void); /* the tool ends: unload all copies */

/* captured.c: streams that the program captures, and the tool's calls meanwhile. */
bool capturing(stream_t stream);
hipError_t tool_waits(stream_t stream);
hipError_t tool_copies(void *to, const void *from, size_t bytes, int kind); /* and waits */
int capture_relax(void); /* allow calls forbidden during captures, until `capture_restore` of the result */
void capture_restore(int mode);

/* graphed.c */
void graphs_drop(void);
API __typeof__(hipLaunchKernel) hipLaunchKernel_spt;
API __typeof__(hipLaunchCooperativeKernel) hipLaunchCooperativeKernel_spt;
API __typeof__(hipGraphLaunch) hipGraphLaunch_spt;
API __typeof__(hipStreamBeginCapture) hipStreamBeginCapture_spt;
API __typeof__(hipStreamEndCapture) hipStreamEndCapture_spt;

/* marks.c: our function in place of one of `handle` that marks ranges; NULL for any other. */
void *own_mark(void *handle, const char *name);

/* interpose.c */
extern const struct own_function OWN[];
extern const size_t OWN_COUNT;

/* redirect.c: redirect calls of the runtime to OWN, in everything loaded now or later; false: no runtime. */
bool redirect(void);
API void luthier_tool_runtime(uint64_t (*launches)(void)); /* our own runtime calls it when it is loaded */

#endif
