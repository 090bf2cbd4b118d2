/* Threads that carry out what is left on streams: as many as there were such streams at the same time. */
#include "guest.h"
#include "work.h"

pthread_cond_t idled = PTHREAD_COND_INITIALIZER;
static pthread_cond_t handed = PTHREAD_COND_INITIALIZER; /* a stream waits for a thread */
static struct stream *waiting;                            /* for a thread */
static unsigned waiting_count, threads, idle;

void drivers_after_fork(void)
{
    pthread_cond_init(&handed, NULL);
    waiting = NULL;
    waiting_count = threads = idle = 0;
}

static void hand_over(struct stream *stream);

void drive(struct stream *stream, const struct work *until, bool patient)
{
    while (stream->first && !(until && (until->passed || stream->first->operation.kind == OPERATION_CALL)))
        if (!step(stream, patient))
            break;
    if (stream->first) {
        hand_over(stream);
        return;
    }
    stream->driven = false;
    pthread_cond_broadcast(&idled);
}

static struct stream *next_waiting(void)
{
    struct stream *stream = waiting;
    waiting = stream->next_waiting;
    waiting_count--;
    return stream;
}

static void *drive_streams(void *unused)
{
    pthread_mutex_lock(&engine);
    while (!unused) {
        while (!waiting) {
            idle++;
            pthread_cond_wait(&handed, &engine);
            idle--;
        }
        drive(next_waiting(), NULL, true);
    }
    return NULL;
}

/* The stream stays driven. */
static void hand_over(struct stream *stream)
{
    struct stream **end = &waiting;
    while (*end)
        end = &(*end)->next_waiting;
    *end = stream;
    stream->next_waiting = NULL;
    waiting_count++;
    if (waiting_count <= idle)
        pthread_cond_signal(&handed);
    else if (thread_start(drive_streams, NULL))
        threads++;
    else if (!threads)
        drive(next_waiting(), NULL, true);
}
