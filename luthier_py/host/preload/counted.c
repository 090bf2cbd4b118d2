/* Launches of clones, and what the tool's variables say after them.
 *
 * A tool that asks for each launch has its variables cleared before it and read after it, which waits for the stream
 * unless reports.c has the report. One that does not lets them grow: they are read when the program or its module ends, or
 * when someone asks. Where the program's own variables change in a launch, the next one waits for it either way.
 */
#include "preloaded.h"

#include "channels.h"
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

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

struct told_of launch_told(const struct copy *copy, unsigned long index, const struct launch_shape *shape)
{
    struct dim3 grid = shape->grid, block = shape->block;
    struct counted counted = {image_number(copy->image), (uint32_t)copy->device, (uint32_t)index, 1,
                              {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}};
    return (struct told_of){counted, copy->name, ranges_now()};
}

static hipError_t clear_variables(const struct copy *copy, stream_t stream)
{
    hipError_t error = hipSuccess;
    for (uint32_t i = 0; !error && i < copy->variable_count; i++) {
        const struct tool_variable *variable = &copy->variables[i];
        if (variable->role == STATE && variable->initial)
            error = REAL(hipMemcpyAsync)(variable->address, variable->initial, variable->bytes, COPY_ON_DEVICE, stream);
        else if (variable->role == STATE)
            error = REAL(hipMemsetAsync)(variable->address, 0, variable->bytes, stream);
    }
    return error;
}

/* In the order of the stream, so that a launch that is still waiting keeps its own. */
static hipError_t set_words(const struct copy *copy, uint32_t index, const uint32_t *values, stream_t stream)
{
    hipError_t error = hipSuccess;
    for (uint32_t i = 0; !error && i < copy->variable_count; i++) {
        char *address = copy->variables[i].address;
        if (copy->variables[i].role == CHANNEL)
            error = REAL(hipMemsetD32Async)(address + sizeof(void *), (int)index, 1, stream);
        for (size_t at = 0; !error && copy->variables[i].role == PARAMETER && at < 8; at += 4, values++)
            if (at < copy->variables[i].bytes)
                error = REAL(hipMemsetD32Async)(address + at, (int)*values, 1, stream);
    }
    return error;
}

/* The worker is told of the launch, and says the parameters. */
static hipError_t begin(const struct copy *copy, const struct told_of *launch, stream_t stream)
{
    size_t words = 0;
    for (uint32_t i = 0; i < copy->variable_count; i++)
        words += 2 * (copy->variables[i].role == PARAMETER);
    uint32_t *values = calloc(words + 1, sizeof *values);
    hipError_t error = hipErrorUnknown;
    if (values && clone_begins(launch, values, words))
        error = set_words(copy, launch->counted.index, values, stream);
    free(values);
    return error;
}

hipError_t prepare_variables(struct copy *copy, const struct told_of *launch, stream_t stream)
{
    if (copy->sized && !sized_begin(copy, launch, stream))
        return hipErrorUnknown;
    hipError_t error = settings.per_launch ? clear_variables(copy, stream) : hipSuccess;
    if (!error && copy->begins)
        error = begin(copy, launch, stream);
    if (error)
        sized_end(copy, stream);
    return error;
}

/* Of several the ranges are those that all of them were in. */
void note_launch(struct copy *copy, struct told_of *launch)
{
    struct told_of *all = &copy->unread, before = *all;
    *all = *launch;
    all->counted.launches += before.counted.launches;
    if (before.counted.launches)
        names_keep_common(&all->ranges, &before.ranges);
    free(before.ranges.text);
    launch->ranges = (struct names){0};
}

/* What is read of a variable after a launch. */
static const void *content_of(const struct tool_variable *variable, size_t *bytes)
{
    *bytes = variable->role == STATE ? variable->bytes : variable->role == SIZED ? variable->memory_bytes : 0;
    return variable->role == SIZED ? variable->memory : variable->address;
}

void send_values(struct copy *copy)
{
    size_t bytes = 0, at = 0, size;
    for (uint32_t i = 0; i < copy->variable_count; i++) {
        content_of(&copy->variables[i], &size);
        bytes += size;
    }
    if (copy->begins)
        channels_flush(copy->device);
    char *values = malloc(bytes + 1);
    hipError_t error = values ? hipSuccess : hipErrorOutOfMemory;
    for (uint32_t i = 0; !error && i < copy->variable_count; i++) {
        const void *content = content_of(&copy->variables[i], &size);
        if (size)
            error = tool_copies(values + at, content, size, COPY_TO_HOST);
        at += size;
    }
    if (!error)
        told_waited(&copy->unread, values, bytes);
    free(values);
    free(copy->unread.ranges.text);
    copy->unread = (struct told_of){0};
}

void send_results(struct copy *copy)
{
    if (!copy->unread.counted.launches)
        return;
    int current = copy->device;
    REAL(hipGetDevice)(&current);
    REAL(hipSetDevice)(copy->device);
    if (REAL(hipDeviceSynchronize)() == hipSuccess) {
        send_values(copy);
        clear_variables(copy, NULL);
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
    if (prepare_variables(copy, launch, shape->stream)) {
        if (later)
            told_not();
        return false;
    }
    hipError_t before = REAL(hipPeekAtLastError)();
    *error = launch_clone(copy, shape);
    if (*error) { /* if the original does not begin either, it says why: each way to launch has errors of its own */
        if (later)
            told_not();
        launch_counts()->failed++;
        sized_end(copy, shape->stream);
        restore_error(before);
        return false;
    }
    given_tell(*error);
    if (later && told(copy, launch, shape->stream))
        return true;
    note_launch(copy, launch);
    if (settings.per_launch && tool_waits(shape->stream) == hipSuccess)
        send_values(copy);
    sized_end(copy, shape->stream);
    return true;
}

/* A copy is a module's kernel, and HIP before 5.5 starts none of these cooperatively. */
static bool can_be_copied(const struct launch_shape *shape)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (!shape->cooperative || real_function("hipModuleLaunchCooperativeKernel"))
        return true;
    if (!atomic_flag_test_and_set(&said))
        say("luthier: cooperative launches run as they are: this HIP runtime has no hipModuleLaunchCooperativeKernel; "
            "a tool at the HSA level (--level hsa) meets them");
    return false;
}

bool tool_launch(struct image *image, const char *kernel, const struct launch_shape *shape, hipError_t *error)
{
    static atomic_flag said = ATOMIC_FLAG_INIT, not_foreseen = ATOMIC_FLAG_INIT;
    unsigned long index = launch_counts()->seen++;
    if (!tool_selects(index, 1))
        return false;
    if (!image || !kernel) {
        launch_counts()->selected++;
        if (!atomic_flag_test_and_set(&said))
            say("luthier: kernels run as they are whose code was loaded before the tool came, or in an unknown form");
        return false;
    }
    if (!can_be_copied(shape)) {
        launch_counts()->selected++;
        return false;
    }
    image_lock(image);
    struct copy *copy = copy_of(image, kernel, device_of(shape->stream));
    launch_counts()->selected += copy && copy->selected;
    bool given = copy && copy->given && is_whole(shape);
    if (copy && copy->given && !given && !atomic_flag_test_and_set(&not_foreseen))
        say("luthier: launches whose last work-groups are not whole are not foreseen, and left out: `-O foresee=0` counts them");
    launch_counts()->explained += copy && copy->selected && copy->explained && given == copy->given;
    if (given && copy->selected)
        given_keep(copy, launch_told(copy, index, shape), shape);
    bool launched = false;
    copy = copy && copy->clone && settings.per_launch ? copy_free(copy, shape->stream) : copy;
    if (copy && copy->clone) {
        struct told_of launch = launch_told(copy, index, shape);
        launched = launch_copy(copy, shape, &launch, error);
        free(launch.ranges.text);
        given_drop(); /* if the original runs instead, nothing is told of it */
    }
    image_unlock(image);
    return launched;
}
