/* Captures: what is put on a stream meanwhile becomes a node. */
#ifndef LUTHIER_CAPTURES_H
#define LUTHIER_CAPTURES_H

#include "luthier.h"

hipError_t capture_operation(struct stream *stream, struct operation *operation); /* takes what it holds */
hipError_t capture_graph(struct stream *stream, const struct graph *executable);
hipError_t capture_event(struct stream *stream, event_t event, bool waits); /* else it is recorded */
hipError_t capture_allocation(struct stream *stream, size_t bytes, void **address);
hipError_t capture_release(struct stream *stream, void *address);
unsigned long long capture_number(const struct stream *stream);    /* never used again; 0: it is not captured */
bool capture_goes_on(unsigned long long number, bool make_invalid);
hipError_t capture_join(unsigned long long number, const struct nodes *after, struct stream *stream); /* capture it too */
void capture_leave(struct stream *stream);
void captures_after_fork(void);
hipError_t capture_forbids_asking(const struct stream *stream); /* whether it is done, or waiting for it */
hipError_t capture_forbids_waiting(void);  /* for all streams */

#endif
