/* What the files of hiprtc share. They are linked into libhiprtc.so and into libamdhip64.so, each with a state of its
 * own: a program that one of them made is used with the same one. They know nothing of the HIP runtime but its public
 * functions, and only where no architecture is named.
 */
#ifndef LUTHIER_HIPRTC_H
#define LUTHIER_HIPRTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handles.h"
#include "hiprtc_protocol.h" /* generated from protocol.py: HIPRTC_..., message codes */
#include "wire.h"

#define API __attribute__((visibility("default")))

/* Kinds of handles, distinct from those of the HIP runtime: in libamdhip64 one table has both. */
enum handle_kind { HANDLE_PROGRAM = 64, HANDLE_LINK };

/* text.c: a message that grows. `bad` stays set once there was no memory. */
struct text { char *at; size_t bytes, room; bool bad; };
void text_add(struct text *text, const void *data, size_t bytes);
void text_number(struct text *text, uint32_t number);
void text_counted(struct text *text, const void *data, size_t bytes);
void text_string(struct text *text, const char *string);
char *take_string(struct cursor *cursor, size_t *bytes); /* counted, ended by a zero; the caller's to free */

/* compiler.c: the worker that compiles. */
enum { TARGET_BYTES = 256 };
bool compiler_call(uint32_t code, const struct text *question, struct reply *reply);
void current_target(char target[TARGET_BYTES]); /* of the current device; "" when there is none */

#endif
