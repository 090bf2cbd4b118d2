/* Streams that are captured: what is put on them becomes nodes of a graph.
 *
 * A capture begins on its origin and spreads to streams that wait for events of captured ones. What may not be done
 * meanwhile makes it invalid: it continues, records nothing more, and gives no graph when it ends. Events know captures
 * by numbers that are never used again, since they outlive them.
 */
#include <stdlib.h>

#include "capture.h"
#include "captures.h"
#include "checks.h"
#include "streams.h"

static struct capture *captures; /* all in progress */
static atomic_uint going_on;     /* how many: read without the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of that list, and of what is in it but nodes and tails */
static unsigned long long last_id;
static _Thread_local int thread_mode = GLOBAL;

void captures_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    captures = NULL;
    going_on = 0;
}

/* What is forbidden, and to whom. Each makes the captures that forbid it invalid. */

bool capture_is_own(const struct capture *capture) { return pthread_equal(capture->thread, pthread_self()); }
static bool forbids_unsafe(const struct capture *capture)
{
    if (thread_mode == RELAXED || capture->mode == RELAXED)
        return false;
    return capture_is_own(capture) || (capture->mode == GLOBAL && thread_mode == GLOBAL);
}

/* It would have to wait for a stream that does nothing but record. */
static bool waits_for_default(const struct capture *capture)
{
    for (const struct stream *s = capture->streams; s; s = s->captured)
        if (stream_is_blocking(s))
            return true;
    return false;
}
static bool forbids_legacy(const struct capture *capture) { return waits_for_default(capture) || forbids_unsafe(capture); }
static bool always(const struct capture *capture) { return (void)capture, true; }

static hipError_t invalidate(bool (*forbids)(const struct capture *), hipError_t error)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (forbids(capture))
            found = capture->invalid = true;
    pthread_mutex_unlock(&lock);
    return found ? error : hipSuccess;
}

bool captures_wait_for_default(void)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct capture *capture = captures; capture && !found; capture = capture->next)
        found = waits_for_default(capture);
    pthread_mutex_unlock(&lock);
    return found;
}

hipError_t check_unsafe(void) { return going_on ? invalidate(forbids_unsafe, hipErrorStreamCaptureUnsupported) : hipSuccess; }
hipError_t check_legacy(void) { return going_on ? invalidate(forbids_legacy, hipErrorStreamCaptureImplicit) : hipSuccess; }
hipError_t capture_forbids_waiting(void) { return going_on ? invalidate(always, hipErrorStreamCaptureUnsupported) : hipSuccess; }

bool captures_go_on(void) { return going_on; }

hipError_t capture_check(const struct stream *stream)
{
    if (stream->capture)
        return stream->capture->invalid ? hipErrorStreamCaptureInvalidated : hipSuccess;
    return stream_is_null(stream) ? invalidate(waits_for_default, hipErrorStreamCaptureImplicit) : hipSuccess;
}

hipError_t capture_forbids_asking(const struct stream *stream)
{
    if (stream->capture) {
        stream->capture->invalid = true;
        return hipErrorStreamCaptureUnsupported;
    }
    return stream_is_null(stream) ? hipSuccess : check_unsafe();
}

hipError_t hipThreadExchangeStreamCaptureMode(int *mode)
{
    int before = thread_mode;
    if (*mode < GLOBAL || *mode > RELAXED)
        return hipErrorInvalidValue;
    thread_mode = *mode;
    *mode = before;
    return hipSuccess;
}

/* Nodes. */

static hipError_t record(struct stream *stream, const struct node_kind *kind, struct content *content)
{
    struct node *node;
    if (stream->capture->invalid) {
        content_discard(kind, content);
        return hipErrorStreamCaptureInvalidated;
    }
    hipError_t error = graph_add(stream->capture->graph, kind, content, stream->tails.at, stream->tails.count, &node);
    if (error)
        return error;
    node->recorded = stream->capture->id;
    stream->tails.count = 0;
    return nodes_add(&stream->tails, &node, 1);
}

hipError_t capture_operation(struct stream *stream, struct operation *operation)
{
    static const struct { const struct node_kind *kind; void (*complete)(struct content *); } KINDS[] = {
        [OPERATION_LAUNCH] = {&LAUNCH_KIND, launch_captured}, [OPERATION_COPY] = {&COPY_KIND, copy_captured},
        [OPERATION_FILL] = {&FILL_KIND, fill_captured}, [OPERATION_CALL] = {&CALL_KIND, NULL}};
    struct content content = {.operation = *operation};
    if (operation->kind == OPERATION_NOTHING)
        return hipSuccess;
    if (KINDS[operation->kind].complete)
        KINDS[operation->kind].complete(&content);
    return record(stream, KINDS[operation->kind].kind, &content);
}

hipError_t capture_graph(struct stream *stream, const struct graph *executable)
{
    struct content content = {.operation.kind = OPERATION_NOTHING};
    hipError_t error = graph_copy(&content.child, executable, false);
    if (error)
        return error;
    content.child->owned = true;
    return record(stream, &GRAPH_KIND, &content);
}

hipError_t capture_event(struct stream *stream, event_t event, bool waits)
{
    return record(stream, waits ? &WAIT_KIND : &RECORD_KIND, &(struct content){.event = event});
}

hipError_t capture_allocation(struct stream *stream, size_t bytes, void **address)
{
    struct content content;
    struct allocate_params params = {.pool = {1, 0, 1, stream->device, {0}}, .bytes = bytes};
    hipError_t error = allocation_prepare(&params, &content);
    if (!error)
        error = record(stream, &ALLOCATE_KIND, &content);
    if (!error)
        *address = params.address;
    return error;
}

hipError_t capture_release(struct stream *stream, void *address)
{
    struct content content;
    hipError_t error = release_prepare(address, &content);
    return error ? error : record(stream, &FREE_KIND, &content);
}

/* Streams that are captured. */

static struct capture *find(unsigned long long id)
{
    struct capture *found = captures;
    while (found && found->id != id)
        found = found->next;
    return found;
}

unsigned long long capture_number(const struct stream *stream) { return stream->capture ? stream->capture->id : 0; }

bool capture_goes_on(unsigned long long id, bool make_invalid)
{
    pthread_mutex_lock(&lock);
    struct capture *found = id ? find(id) : NULL;
    if (found && make_invalid)
        found->invalid = true;
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

bool capture_has(const struct graph *graph)
{
    pthread_mutex_lock(&lock);
    const struct capture *capture = captures;
    while (capture && capture->graph != graph)
        capture = capture->next;
    pthread_mutex_unlock(&lock);
    return capture != NULL;
}

static hipError_t enter(struct capture *capture, struct stream *stream)
{
    if (stream_is_null(stream))
        return hipErrorStreamCaptureImplicit;
    if (stream->capture == capture)
        return hipSuccess;
    if (stream->capture)
        return hipErrorStreamCaptureMerge;
    stream->capture = capture;
    stream->captured = capture->streams;
    capture->streams = stream;
    return hipSuccess;
}

hipError_t capture_join(unsigned long long id, const struct nodes *after, struct stream *stream)
{
    pthread_mutex_lock(&lock);
    struct capture *capture = find(id);
    hipError_t error = capture ? enter(capture, stream) : hipSuccess;
    pthread_mutex_unlock(&lock);
    return error || !capture ? error : nodes_add(&stream->tails, after->at, after->count);
}

static void leave(struct stream *stream)
{
    struct stream **place = &stream->capture->streams;
    while (*place != stream)
        place = &(*place)->captured;
    *place = stream->captured;
    stream->capture = NULL;
    nodes_clear(&stream->tails);
}

/* The capture is over; `keep`: a caller has its graph. */
void capture_end(struct capture *capture, bool keep)
{
    pthread_mutex_lock(&lock);
    while (capture->streams)
        leave(capture->streams);
    for (struct capture **place = &captures; *place; place = &(*place)->next)
        if (*place == capture) {
            *place = capture->next;
            going_on--;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (!keep && !capture->given)
        graph_destroy(capture->graph);
    nodes_clear(&capture->set_aside);
    free(capture);
}

void capture_leave(struct stream *stream)
{
    if (stream->capture && stream->capture->origin == stream) {
        capture_end(stream->capture, false);
    } else if (stream->capture) {
        pthread_mutex_lock(&lock);
        leave(stream);
        pthread_mutex_unlock(&lock);
    }
}

/* Begin and end. */

hipError_t capture_begin(struct stream *stream, struct graph *graph, int mode)
{
    if (stream_is_null(stream))
        return hipErrorStreamCaptureUnsupported;
    if (stream->capture)
        return hipErrorIllegalState;
    struct capture *capture = calloc(1, sizeof *capture);
    struct graph *own = graph || !capture ? NULL : graph_new(false);
    if (!capture || !(graph || own)) {
        free(capture);
        return hipErrorOutOfMemory;
    }
    *capture = (struct capture){.graph = graph ? graph : own, .given = graph != NULL, .mode = mode, .thread = pthread_self(),
                                .origin = stream};
    pthread_mutex_lock(&lock);
    capture->id = ++last_id;
    capture->next = captures;
    captures = capture;
    going_on++;
    hipError_t error = enter(capture, stream);
    pthread_mutex_unlock(&lock);
    return error;
}
