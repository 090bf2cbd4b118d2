/* Counts of copies that were not read yet: sent when their code object, the tool or the program ends. */
#include "images.h"

#include <stdlib.h>

void image_unloaded(struct image *image)
{
    told_settle();
    image_lock(image);
    for (struct copy *copy = image->copies; copy; copy = copy->next)
        send_results(copy);
    copies_forget(image);
    free(image->own);
    image->object.data = image->own = NULL;
    image->module = NULL;
    image_unlock(image);
    image_spare(image);
}

void copies_collect(void)
{
    told_settle();
    for (struct image *image = image_first(); image; image = image->next) {
        image_lock(image);
        for (struct copy *copy = image->copies; copy; copy = copy->next)
            send_results(copy);
        image_unlock(image);
    }
}

void copies_drop(void)
{
    told_drop();
    for (struct image *image = image_first(); image; image = image->next) {
        image_lock(image);
        if (image->copies)
            REAL(hipDeviceSynchronize)();
        copies_forget(image);
        image_unlock(image);
    }
    channels_drop();
    sized_drop();
}

__attribute__((constructor)) static void be_asked(void) { collect_by(copies_collect); }
