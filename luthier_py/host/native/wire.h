/* The connection to a worker process: start it, send messages, wait for replies. */
#ifndef LUTHIER_WIRE_H
#define LUTHIER_WIRE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct part { const void *data; size_t bytes; };
struct reply { int32_t status; uint32_t bytes; char *data; }; /* data is the receiver's to free */
struct wire { int fd; pthread_mutex_t lock; uint64_t file; }; /* `file`: what `fd` is, as long as the program does not close it */

enum { SHARED_FD = 4 }; /* in a worker: the file that it shares with its program */

/* Start a worker for `service`; `shared_fd` is inherited by it. False, with one line on stderr, when the worker cannot be started. */
bool wire_start(struct wire *wire, const char *service, int shared_fd);
/* A message without a reply; false when the worker is gone. The caller holds no lock. */
bool wire_send(struct wire *wire, uint32_t code, const struct part *parts, int count);
bool wire_call(struct wire *wire, uint32_t code, const struct part *parts, int count, struct reply *reply);
bool wire_gone(const struct wire *wire);
bool wire_taken(const struct wire *wire); /* the program has closed its descriptor, as some do with all that are open */
void wire_close(struct wire *wire);
int descriptor_out_of_the_way(int fd); /* the same file under a high number that the program does not use */
uint64_t descriptor_file(int fd);      /* a number of the file behind it; 0: none */
void say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* one line on stderr */

/* Reading a reply. `bad` stays set once something was missing. */
struct cursor { const char *at, *end; bool bad; };
const void *take(struct cursor *cursor, size_t bytes);
uint32_t take32(struct cursor *cursor);
uint64_t take64(struct cursor *cursor);

#endif
