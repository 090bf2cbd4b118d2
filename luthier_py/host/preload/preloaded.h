/* The LD_PRELOAD tool at the level of HIP: what its files share.
 *
 * From below: runtime.c finds the runtime's functions; captured.c knows what is captured, images.c the program's code
 * objects; copies.c has the instrumented copies of their kernels, sized.c memory for launches of these; allocated.c knows
 * the program's memory and fills what is new; counted.c launches copies, reports.c has their reports, collected.c asks
 * what they have counted; driver.c carries out what host/tool decides; known.c knows what handles stand for; graphs are
 * graphed.c's, their changes changed.c's, launches launched.c's; ranges.c keeps the program's ranges, marks.c hears of
 * them; interpose.c puts our functions before the runtime's, redirect.c before a runtime that was loaded without us, as a
 * program that brings its tool asks. What is the same for HIP and HSA is in host/tool.
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
void use_runtime(void *handle); /* of dlopen: then there */
void *used_runtime(void);
void *loaded_runtime(void);     /* for dlsym; NULL: there is none */
typedef void *dlsym_function(void *, const char *);
dlsym_function *next_dlsym(void); /* the C library's */
void restore_error(hipError_t before); /* the program does not meet errors that we have met since then */

/* known.c: what a function's address or a kernel's handle stands for. */
struct meaning { const void *key; struct image *image; char *name; };
struct meaning meaning_of(const void *key);
void expect_handle(const void *function); /* a function in a graph, for which the graph may later show its handle */
struct image *image_of(const void *key, const char **name);

/* images.c: code objects of the program. */
struct image;
/* `bytes` 0: as many as its headers say; NULL if unknown. `lasting`: the data stay as long as somebody launches of it,
 * as those of a library do, which may be gigabytes; else they are copied. */
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
    struct copy *beside; /* the same again, with variables of its own, for launches on other streams at the same time */
    bool is_beside;      /* it is that of another */
    struct image *image;
    char *name;
    struct asked asked; /* with the module's code: ROCm's runtimes, and who debugs them, read it as long as that is loaded */
    struct module *module;
    struct kernel *clone;
    struct launch_memory *memory; /* of the launch that is under way: there is one at a time, since each is waited for */
    uint64_t told;   /* so many slots until its last report was, and the stream on which */
    stream_t told_on;
    unsigned long told_before; /* so many streams were destroyed until then */
};
struct copy *copy_of(struct image *image, const char *name, int device); /* the image is locked */
/* It, or one beside it, whose variables no launch on another stream has; NULL: there is none, and no more can be made. */
struct copy *copy_free(struct copy *copy, stream_t stream);
void copies_forget(struct image *image); /* which is locked: everything that the tool knows of it */

/* counted.c */
__typeof__(&hipExtModuleLaunchKernel) real_with_items(void);
int device_of(stream_t stream);
/* Launch the clone of an image's kernel, selected under this number; false when the original is to run instead. */
bool tool_launch(struct image *image, const char *kernel, unsigned long index, const struct launch_shape *shape, hipError_t *error);
/* One that begins now on this thread, and so is in its ranges, whose names are to be freed. */
struct told_of launch_told(const struct copy *copy, unsigned long index, const struct launch_shape *shape);
/* Before a launch: variables are cleared, if each launch is asked for, and set; it has its memory, until `launch_ends`.
 * False: it runs as it is, and has none. */
bool launch_prepare(struct copy *copy, const struct told_of *launch, stream_t stream);
void launch_ends(struct copy *copy, stream_t stream);
void send_results(struct copy *copy); /* when the device has done its launches; its image is locked */

/* sized.c: memory of launches. */
bool sized_allocate(struct launch_memory *memory, int device, void *stream);
void sized_release(struct launch_memory *memory, int device, void *stream);
void sized_drop(void); /* the tool goes, and no launch of it is left */

/* allocated.c: memory that kernels may access. */
void allocations_missed(void); /* there may be some that we have not seen */
void allocations_managed(void **pointer, size_t bytes);
void *allocations_table(const struct loaded *copy, const struct told_of *launch, const void *cell, size_t *bytes); /* NULL: not known */

/* reports.c: reports of single launches for which nobody waits. */
/* Whether a launch on this stream would find its variables in use by one on another, which does not get done. */
bool told_elsewhere(const struct copy *copy, stream_t stream);
bool told_later(struct copy *copy, const struct told_of *launch, stream_t stream); /* whether this one is: then `told` or `told_not` comes */
bool told(struct copy *copy, const struct told_of *launch, stream_t stream); /* false: it is to be waited for */
void told_not(void); /* it was not begun */
/* One that was waited for, behind all others. */
void told_waited(const struct told_of *launch, const void *values, size_t bytes);
void told_stream_gone(void);
void told_settle(void); /* until the worker has all of them */
void told_drop(void);   /* the tool goes */
/* Our own runtime calls it when it is loaded. `file`: in which its memory is, and where; `failed`: nothing gets done any more. */
API void luthier_tool_memory(int (*file)(const void *address, uint64_t *offset), bool (*failed)(void));

/* given.c: arguments of launches, for tools that want to know them. */
void given_keep(const struct copy *copy, struct told_of launch, const struct launch_shape *shape); /* takes its ranges */
hipError_t given_tell(hipError_t error); /* the launch whose arguments this thread has kept has begun, or it has not */
void given_drop(void);

/* collected.c */
void image_unloaded(struct image *image);
void copies_collect(void);
void copies_drop(void); /* the tool goes: unload all copies */

/* captured.c: streams that the program captures, and calls of the tool's own meanwhile. */
bool capturing(stream_t stream);
hipError_t tool_waits(stream_t stream);
hipError_t tool_copies(void *to, const void *from, size_t bytes, int kind); /* and waits */
int capture_relax(void); /* what the runtime forbids meanwhile is allowed, until `capture_restore` of the result */
void capture_restore(int mode);

/* graphed.c */
void graphs_drop(void);
API __typeof__(hipLaunchKernel) hipLaunchKernel_spt;
API __typeof__(hipLaunchCooperativeKernel) hipLaunchCooperativeKernel_spt;
API __typeof__(hipGraphLaunch) hipGraphLaunch_spt;
API __typeof__(hipStreamBeginCapture) hipStreamBeginCapture_spt;
API __typeof__(hipStreamEndCapture) hipStreamEndCapture_spt;

/* marks.c: our own function in the place of one of `handle` with which programs mark ranges; NULL for any other. */
void *own_mark(void *handle, const char *name);

/* interpose.c */
extern const struct own_function OWN[];
extern const size_t OWN_COUNT;

/* redirect.c: calls of the runtime come to OWN from now on, in all that is loaded and will be; false: no runtime. */
bool redirect(void);
API void luthier_tool_runtime(uint64_t (*launches)(void)); /* our own runtime calls it when it is loaded */

#endif
