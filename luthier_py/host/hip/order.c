/* Which works come after which, by their numbers, also when they are long finished: pools ask who may use again what was freed.
 *
 * A stream keeps one note for each other stream that it has waited for: up to which work of that one its own come after, and
 * from which of its own on. A note that replaces another forgets what was between, so the answer may be no where it was yes
 * once, never the other way round. All of it is under work.c's lock.
 */
#include <stdlib.h>

#include "device.h"
#include "streams.h"

/* From work `at` of the stream that has this on, its works come after all of `stream` up to `number`. */
struct origin { const struct stream *stream; uint64_t at, number; };

/* The default stream looks for one stream after the other, in the order of its notes: so the next one first. */
static struct origin *origin_of(struct stream *stream, const struct stream *other)
{
    for (size_t i = 0; i < stream->origin_count; i++) {
        stream->origin_next = stream->origin_next + 1 < stream->origin_count ? stream->origin_next + 1 : 0;
        if (stream->origins[stream->origin_next].stream == other)
            return &stream->origins[stream->origin_next];
    }
    return NULL;
}

void order_note(struct stream *stream, uint64_t at, const struct stream *other, uint64_t number)
{
    struct origin *place = origin_of(stream, other);
    if (place && place->number >= number)
        return;
    if (!place) {
        struct origin *larger = realloc(stream->origins, (stream->origin_count + 1) * sizeof *larger);
        if (!larger)
            return; /* what is not known is used again later */
        stream->origins = larger;
        place = &larger[stream->origin_count++];
    }
    *place = (struct origin){other, at, number};
}

void order_forget(struct stream *stream, const struct stream *other)
{
    struct origin *place = origin_of(stream, other);
    if (place)
        *place = stream->origins[--stream->origin_count];
}

void order_clear(struct stream *stream)
{
    free(stream->origins);
    stream->origins = NULL;
    stream->origin_count = 0;
}

bool order_holds(const struct stream *stream, uint64_t number, const struct stream *other, uint64_t earlier, unsigned detours)
{
    if (stream == other)
        return earlier <= number;
    for (size_t i = 0; i < stream->origin_count && detours; i++) {
        const struct origin *origin = &stream->origins[i];
        if (origin->at <= number && origin->number >= earlier &&
            order_holds(origin->stream, origin->number, other, earlier, detours - 1))
            return true;
    }
    return false;
}

/* The default stream of each device, and what other streams have to do with it. */

enum { NON_BLOCKING = 1 };

static struct stream null_streams[MAX_DEVICES];

struct stream *stream_null(int device) { return &null_streams[device]; }
bool stream_is_null(const struct stream *stream) { return stream >= null_streams && stream < null_streams + MAX_DEVICES; }
bool stream_is_blocking(const struct stream *stream) { return !(stream->flags & NON_BLOCKING); }
