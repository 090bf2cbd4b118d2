/* Handles that programs hold: what is alive. A handle is looked up here before it is dereferenced. */
#ifndef LUTHIER_HANDLES_H
#define LUTHIER_HANDLES_H

#include <stdbool.h>
#include <stddef.h>

/* Kinds are numbers of the files that make handles; they differ between all that are linked into one library. */
bool handle_add(const void *handle, int kind);    /* false: out of memory */
bool handle_is(const void *handle, int kind);
bool handle_remove(const void *handle, int kind); /* false: it was none; so only one thread destroys */
size_t handles_of(int kind, const void ***found); /* all of them, in a list to be freed */

#endif
