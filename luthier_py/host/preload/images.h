/* What images.c, copies.c and collected.c share: a code object of the program, with the tool's data about it. */
#ifndef LUTHIER_IMAGES_H
#define LUTHIER_IMAGES_H

#include "preloaded.h"

struct symbol { struct symbol *next; char *name; void *address; bool managed; };

struct image {
    struct image *next, *next_spare;
    struct code_object object;
    void *own; /* its data, if they are a copy */
    struct module *module; /* where the program loaded it as one */
    struct symbol *symbols;
    struct copy *copies;
    pthread_mutex_t lock; /* one launch at a time: the tool's variables are of one launch */
};

struct image *image_first(void); /* and the next ones */
void image_spare(struct image *image); /* nothing is known of it any more */

enum found { UNKNOWN, DEVICE, MANAGED };
enum found find_here(const struct image *image, const char *name, void **here); /* MANAGED: `*here` is its memory */

#endif
