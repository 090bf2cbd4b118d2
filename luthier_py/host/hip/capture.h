/* What captures.c and capture.c share. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include "graph.h"

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };    /* hipStreamCaptureMode */

struct capture {
    struct capture *next;
    unsigned long long id;
    struct graph *graph;
    bool given;              /* the program's graph, which stays when the capture is invalid */
    atomic_bool invalid;
    int mode;
    pthread_t thread;        /* that began it */
    struct stream *origin;
    struct stream *streams;  /* all that are captured */
    struct nodes set_aside;  /* that hipStreamUpdateCaptureDependencies took out of the tails: they need not be joined */
};

hipError_t capture_begin(struct stream *stream, struct graph *graph, int mode); /* NULL: into a new one */
void capture_end(struct capture *capture, bool keep); /* `keep`: a caller has its graph */
bool capture_is_own(const struct capture *capture); /* this thread's */
bool captures_go_on(void);
bool captures_wait_for_default(void); /* any: what is put on a default stream would have to wait for it */
hipError_t capture_check(const struct stream *stream); /* before something is put on it */

#endif
