/* The default stream of each device, and what other streams have to do with it. */
#include "luthier.h"

enum { NON_BLOCKING = 1 };

static struct stream null_streams[MAX_DEVICES];

struct stream *stream_null(int device) { return &null_streams[device]; }
bool stream_is_null(const struct stream *stream) { return stream >= null_streams && stream < null_streams + MAX_DEVICES; }
bool stream_is_blocking(const struct stream *stream) { return !(stream->flags & NON_BLOCKING); }
