/* What a program is run by, where a loader is named instead of the one that it asks for itself. */
#ifndef LUTHIER_LOADED_H
#define LUTHIER_LOADED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { BEFORE = 6, MOST_INTERPRETERS = 4, MOST_OF_A_SCRIPT = 2 * MOST_INTERPRETERS, LINE = 256 };

/* A command line that the kernel can carry out. Arrays and texts are the caller's: after vfork nothing is allocated. */
struct loaded {
    const char *path;
    const char **words; /* with room for BEFORE + MOST_OF_A_SCRIPT + 1 more than were given */
    char lines[MOST_INTERPRETERS][LINE];
    char libraries[2 * PATH_MAX], place[PATH_MAX];
};

/* Whether PATH, with `given` as its words, is to be run by the loader of `environment`; `to` has the command then. */
bool load_by_name(struct loaded *to, const char *path, char *const *given, char *const *environment);

/* The file of this process's program if a loader was named for it; NULL if none was. */
const char *own_program(void);

#endif
