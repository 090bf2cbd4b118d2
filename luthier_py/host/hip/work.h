/* What steps.c, drivers.c and work.c share: works, and the lock under which they change. */
#ifndef LUTHIER_WORK_H
#define LUTHIER_WORK_H

#include "streams.h"

struct work {
    struct work *next; /* on its stream */
    struct stream *stream; /* which may be gone once it has passed */
    uint64_t stream_id;
    struct operation operation;
    struct work **after; /* works of other streams that it comes after */
    size_t after_count;
    uint64_t number;
    unsigned references;
    bool passed;
    pthread_cond_t passing; /* for those who wait until it has passed */
    uint64_t command; /* of all that it comes after, too */
    uint64_t *stamp, time;
    uint64_t asked; /* when it was put, and by which thread: for a trace */
    uint32_t asking;
    hipError_t error;
};

extern pthread_mutex_t engine; /* of all works and queues */
extern pthread_cond_t idled;   /* a stream is driven no more */

/* traces.c: if a trace is requested. `command`: by which the worker does it; 0: it was done here, from `begin` on. */
void trace_asked(struct work *work);
void trace_work(const struct work *work, uint64_t begin, uint64_t command);

/* steps.c; the lock is held. Of works that may be NULL. */
bool is_finished(const struct work *work);
struct work *hold_work(struct work *work);
void let_work_go(struct work *work);
/* The head of a stream's queue, by who drives it. False: it cannot be carried out yet. */
bool step(struct stream *stream, bool patient);

/* drivers.c; the lock is held. Carry out what is on a stream: all of it, on a thread of our own; or what comes up to `until`
 * and no host functions, as the thread that put it there. What is left then is passed to a thread. */
void drive(struct stream *stream, const struct work *until, bool patient);
void drivers_after_fork(void);

#endif
