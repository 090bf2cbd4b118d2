/* Arguments of launches, for tools that request them.
 *
 * The kernarg segment without hidden arguments is saved before a launch and reported once the launch has begun: for a
 * kernel without a clone, nothing else is reported. Each launch is one call of one thread.
 */
#include "preloaded.h"

#include <stdlib.h>
#include <string.h>

static __thread struct {
    struct told_of launch;
    char *kernel, *segment;
    size_t bytes;
} kept;

void given_drop(void)
{
    free(kept.kernel);
    free(kept.segment);
    free(kept.launch.ranges.text);
    kept.kernel = kept.segment = kept.launch.ranges.text = NULL;
}

/* The program passes arguments one by one or as a segment. */
static void fill(const struct copy *copy, const struct launch_shape *shape)
{
    for (uint32_t i = 0; shape->args && i < copy->asked.made.argument_count && shape->args[i]; i++)
        memcpy(kept.segment + copy->asked.made.arguments[i].offset, shape->args[i], copy->asked.made.arguments[i].bytes);
    const void *buffer = NULL;
    size_t bytes = 0;
    for (void **extra = shape->extra; !shape->args && extra && (*extra == LAUNCH_BUFFER || *extra == LAUNCH_BUFFER_BYTES); extra += 2)
        if (*extra == LAUNCH_BUFFER)
            buffer = extra[1];
        else
            bytes = *(const size_t *)extra[1];
    if (buffer)
        memcpy(kept.segment, buffer, bytes < kept.bytes ? bytes : kept.bytes);
}

void given_keep(const struct copy *copy, struct told_of launch, const struct launch_shape *shape)
{
    given_drop();
    kept.bytes = 0;
    for (uint32_t i = 0; i < copy->asked.made.argument_count; i++) {
        struct place place = copy->asked.made.arguments[i];
        size_t end = (size_t)place.offset + place.bytes;
        kept.bytes = end > kept.bytes ? end : kept.bytes;
    }
    kept.launch = launch;
    kept.launch.kernel = kept.kernel = strdup(copy->name);
    kept.segment = calloc(1, kept.bytes + 1);
    if (kept.kernel && kept.segment)
        fill(copy, shape);
    else
        given_drop();
}

hipError_t given_tell(hipError_t error)
{
    if (kept.kernel && !error)
        clone_given(&kept.launch, kept.segment, kept.bytes);
    else if (kept.kernel)
        launch_counts()->failed++;
    given_drop();
    return error;
}
