/* Launches of clones, and what the tool's variables say after them.
 *
 * For a tool that requests each launch, variables are cleared before it and read after it, which waits for the stream
 * unless reports.c has the report. Where the program's own variables change in a launch, the next one waits for it either
 * way.
 */
#include "preloaded.h"

#include "ranges.h"

#include <stdlib.h>

/* Streams that are no handles: the default one, hipStreamLegacy and hipStreamPerThread. */
static bool is_special(stream_t stream) { return (uintptr_t)stream <= 2; }

int device_of(stream_t stream)
{
    int device = 0;
    if (is_special(stream) || !real_function("hipStreamGetDevice") ||
        REAL(hipStreamGetDevice)(stream, &device) != hipSuccess)
        REAL(hipGetDevice)(&device);
    return device;
}

struct told_of launch_told(const struct copy *copy, unsigned long index, const struct launch_shape *s)
{
    struct shape shape = {{s->grid.x, s->grid.y, s->grid.z}, {s->block.x, s->block.y, s->block.z}};
    struct told_of launch = copy_told(&copy->loaded, index, &shape);
    launch.ranges = ranges_now();
    return launch;
}

bool launch_prepare(struct copy *copy, const struct told_of *launch, stream_t stream)
{
    struct loaded *loaded = &copy->loaded;
    bool good = (!loaded->sized || (copy->memory = memory_begin(loaded, launch, stream))) &&
                (!settings.per_launch || copy_clear(loaded, stream)) && copy_begin(loaded, launch, copy->memory, stream);
    if (!good)
        launch_ends(copy, stream);
    return good;
}

void launch_ends(struct copy *copy, stream_t stream)
{
    memory_end(&copy->loaded, copy->memory, stream);
    copy->memory = NULL;
}

void send_results(struct copy *copy)
{
    if (!copy->loaded.unread.counted.launches)
        return;
    int device = copy->loaded.device, current = device;
    REAL(hipGetDevice)(&current);
    REAL(hipSetDevice)(device);
    if (REAL(hipDeviceSynchronize)() == hipSuccess) {
        copy_send(&copy->loaded, NULL);
        copy_clear(&copy->loaded, NULL);
    }
    REAL(hipSetDevice)(current);
}

/* Runtimes before HIP 6 have it under its mangled name alone. */
__typeof__(&hipExtModuleLaunchKernel) real_with_items(void)
{
    const char *mangled = "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j";
    void *plain = real_function("hipExtModuleLaunchKernel");
    return (__typeof__(&hipExtModuleLaunchKernel))(plain ? plain : required_function(mangled));
}

static hipError_t launch_clone(const struct copy *copy, const struct launch_shape *s)
{
    if (!is_whole(s))
        return real_with_items()(copy->clone, s->grid.x * s->block.x - s->lacking.x, s->grid.y * s->block.y - s->lacking.y,
                                 s->grid.z * s->block.z - s->lacking.z, s->block.x, s->block.y, s->block.z, s->lds_bytes,
                                 s->stream, s->args, s->extra, NULL, NULL, 0);
    if (s->cooperative)
        return REAL(hipModuleLaunchCooperativeKernel)(copy->clone, s->grid.x, s->grid.y, s->grid.z, s->block.x, s->block.y,
                                                      s->block.z, s->lds_bytes, s->stream, s->args);
    return REAL(hipModuleLaunchKernel)(copy->clone, s->grid.x, s->grid.y, s->grid.z, s->block.x, s->block.y, s->block.z,
                                       s->lds_bytes, s->stream, s->args, s->extra);
}

/* False when it could not be begun, and the original is to run. */
static bool launch_copy(struct copy *copy, const struct launch_shape *shape, struct told_of *launch, hipError_t *error)
{
    bool later = settings.per_launch && told_later(copy, launch, shape->stream);
    if (!launch_prepare(copy, launch, shape->stream)) {
        if (later)
            told_not();
        return false;
    }
    hipError_t before = REAL(hipPeekAtLastError)();
    *error = launch_clone(copy, shape);
    if (*error) { /* if the original does not begin either, it says why: each way to launch has its errors */
        if (later)
            told_not();
        launch_counts()->failed++;
        launch_ends(copy, shape->stream);
        restore_error(before);
        return false;
    }
    given_tell(*error);
    if (later && told(copy, launch, shape->stream))
        return true;
    copy_note(&copy->loaded, launch);
    if (settings.per_launch && tool_waits(shape->stream) == hipSuccess)
        copy_send(&copy->loaded, copy->memory);
    launch_ends(copy, shape->stream);
    return true;
}

/* A copy is a module's kernel, and HIP before 5.5 starts none of these cooperatively. */
static bool can_be_copied(const struct launch_shape *shape)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (!shape->cooperative || real_function("hipModuleLaunchCooperativeKernel"))
        return true;
    tool_passes(&said, "cooperative launches run as they are: this HIP runtime has no hipModuleLaunchCooperativeKernel; "
                       "a tool at the HSA level (--level hsa) meets them");
    return false;
}

bool tool_launch(struct image *image, const char *kernel, unsigned long index, const struct launch_shape *shape, hipError_t *error)
{
    static atomic_flag said = ATOMIC_FLAG_INIT, not_foreseen = ATOMIC_FLAG_INIT;
    if (!image || !kernel) {
        tool_passes(&said, "kernels run as they are whose code was loaded before the tool came, or in an unknown form");
        return false;
    }
    if (!can_be_copied(shape))
        return false;
    image_lock(image);
    struct copy *copy = copy_of(image, kernel, device_of(shape->stream));
    bool selected = copy && copy->asked.selected, wanted = copy && copy->asked.made.given, given = wanted && is_whole(shape);
    launch_counts()->selected += selected;
    if (wanted && !given && !atomic_flag_test_and_set(&not_foreseen))
        say("luthier: launches whose last work-groups are not whole are not foreseen, and left out: `-O foresee=0` counts them");
    launch_counts()->explained += selected && copy->asked.explained && given == wanted;
    if (given && selected)
        given_keep(copy, launch_told(copy, index, shape), shape);
    bool launched = false;
    copy = copy && copy->clone && settings.per_launch ? copy_free(copy, shape->stream) : copy;
    if (copy && copy->clone) {
        struct told_of launch = launch_told(copy, index, shape);
        launched = launch_copy(copy, shape, &launch, error);
        free(launch.ranges.text);
        given_drop(); /* if the original runs instead, nothing is reported of it */
    }
    image_unlock(image);
    return launched;
}
