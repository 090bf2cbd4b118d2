/* Streams: what is on them, in which order, and who waits for it. */
#ifndef LUTHIER_STREAMS_H
#define LUTHIER_STREAMS_H

#include "operations.h"

struct stream {
    unsigned flags;
    int priority, device;
    uint64_t id;
    struct capture *capture; /* that it is part of, or NULL */
    struct stream *captured; /* the next stream of that */
    struct nodes tails;      /* of what is recorded: the next node comes after these */
    uint32_t *mask, mask_words; /* of compute units; NULL: all */
    int policy;              /* how programs wait for it, if they said so */
    /* The rest is steps.c's, drivers.c's and work.c's. */
    pthread_mutex_t turn;     /* of those who put something on it; taken before the lock of all works */
    struct stream *next, *next_waiting;
    struct work *first, *end; /* what has not passed */
    struct work *last;        /* that was put on it */
    bool driven;
    uint64_t command;          /* of all that has passed */
    struct origin *origins;   /* order.c's */
    size_t origin_count, origin_next;
};

/* order.c: what comes after what; called under the lock of all works. */
enum { DETOURS = 5 }; /* streams through which that is followed */
void order_note(struct stream *stream, uint64_t at, const struct stream *other, uint64_t number);
void order_forget(struct stream *stream, const struct stream *other);
void order_clear(struct stream *stream);
bool order_holds(const struct stream *stream, uint64_t number, const struct stream *other, uint64_t earlier, unsigned detours);
struct stream *stream_null(int device);    /* the default one */
bool stream_is_null(const struct stream *stream);
bool stream_is_blocking(const struct stream *stream);

/* work.c: operations on streams. References are counted; places hold one, or NULL for what is finished. */
struct work;
/* Takes what the operation holds. `after`: another work that it comes after, or NULL. `made` gets a reference. */
hipError_t work_put(struct stream *stream, struct operation *operation, struct work *after, bool wait, struct work **made);
bool work_finished(struct work *const *place);
/* Whether what is put on a stream next comes after it, `across`: also by way of other streams. */
bool work_precedes(struct work *const *place, const struct stream *stream, bool across);
hipError_t work_await(struct work *const *place);
struct work *work_hold(struct work *const *place);
/* A copy of it. */
hipError_t operation_put(struct stream *stream, const struct operation *operation);
void work_exchange(struct work **place, struct work *work); /* takes `work`, lets the one that was there go */
uint64_t work_time(struct work *const *place); /* nanoseconds when an event was recorded */
void work_after_fork(void);
void stream_begin(struct stream *stream); /* until stream_end no other thread puts anything on it */
void stream_end(struct stream *stream);
void stream_enter(struct stream *stream);
void stream_leave(struct stream *stream); /* nothing is left on it */
bool stream_finished(const struct stream *stream); /* and all that its next operation would come after */
hipError_t streams_await(int device); /* all that is on streams of a device now; -1: of all devices */

/* waits.c: as programs wait, after which pools settle. */
hipError_t work_wait(struct work *const *place);
hipError_t stream_wait(struct stream *stream);
hipError_t streams_wait(int device); /* as streams_await */
hipError_t event_wait_for(struct stream *stream, event_t event);
hipError_t event_record_on(struct stream *stream, event_t event); /* also while it is captured */

/* streams.c */
struct stream *stream_of(stream_t handle); /* NULL if it is none */
int stream_device(stream_t handle);        /* the current one if it is none */
void streams_reset(int device);            /* destroy those that programs have made */
bool default_stream_of_thread(bool on);    /* what NULL means here from now on; gives what it meant */

/* shared_events.c: events that several programs know. */
struct shared_event;
hipError_t shared_event_make(struct shared_event **event);
hipError_t shared_event_open(struct shared_event **event, const struct memory_handle *handle);
hipError_t shared_event_describe(const struct shared_event *event, struct memory_handle *handle);
void shared_event_free(struct shared_event *event);
hipError_t shared_event_record(struct shared_event *event, struct stream *stream);
bool shared_event_done(const struct shared_event *event);
void shared_event_wait(const struct shared_event *event);
hipError_t shared_event_wait_for(struct shared_event *event, struct stream *stream);

/* nodes.c */
hipError_t nodes_add(struct nodes *nodes, struct node *const *more, size_t count);
void nodes_clear(struct nodes *nodes);

#endif
