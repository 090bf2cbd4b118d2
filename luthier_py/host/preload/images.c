/* Code objects of the program, and where their variables are. */
#include "images.h"
#include "modules.h"

#include <stdlib.h>
#include <string.h>

static struct image *images; /* none ever leaves this list, so that it can be walked without a lock */
static struct image *spare;  /* those whose module was unloaded: for the next ones */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of symbols */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

void image_lock(struct image *image) { pthread_mutex_lock(&image->lock); }
void image_unlock(struct image *image) { pthread_mutex_unlock(&image->lock); }
bool image_module(const struct image *image) { return image && image->module; }

static struct image *take_spare(void)
{
    pthread_mutex_lock(&lock);
    struct image *image = spare;
    if (image)
        spare = image->next_spare;
    else if ((image = calloc(1, sizeof *image))) {
        pthread_mutex_init(&image->lock, NULL);
        image->next = images;
        images = image;
    }
    pthread_mutex_unlock(&lock);
    return image;
}

struct image *image_new(const void *data, size_t bytes, bool lasting)
{
    bytes = bytes ? bytes : data ? image_bytes(data) : 0;
    void *own = bytes && !lasting ? malloc(bytes) : NULL;
    struct image *image = bytes && (lasting || own) ? take_spare() : NULL;
    if (!image) {
        free(own);
        return NULL;
    }
    image_lock(image);
    image->object = (struct code_object){code_object_number(), lasting ? data : memcpy(own, data, bytes), bytes, NULL};
    image->own = own;
    image_unlock(image);
    return image;
}

void image_loaded(struct image *image, struct module *module)
{
    if (image)
        image->module = module;
}

void image_variable(struct image *image, const char *name, void *address, bool managed)
{
    struct symbol *symbol = image ? malloc(sizeof *symbol) : NULL;
    if (!symbol)
        return;
    pthread_mutex_lock(&lock);
    *symbol = (struct symbol){image->symbols, strdup(name), address, managed};
    image->symbols = symbol;
    pthread_mutex_unlock(&lock);
}

/* A runtime that supports a module's managed variables returns their memory, and not the pointers to it. */
static enum found find_in_module(const struct image *image, const char *name, void **here)
{
    struct pointer_attributes attributes = {0};
    size_t bytes;
    if (REAL(hipModuleGetGlobal)(here, &bytes, image->module, name) != hipSuccess)
        return UNKNOWN;
    bool known = REAL(hipPointerGetAttributes)(&attributes, *here) == hipSuccess;
    return known && attributes.managed ? MANAGED : DEVICE;
}

enum found find_here(const struct image *image, const char *name, void **here)
{
    if (image->module)
        return find_in_module(image, name, here);
    for (const struct symbol *symbol = image->symbols; symbol; symbol = symbol->next)
        if (strcmp(symbol->name, name) == 0) {
            if (symbol->managed)
                memcpy(here, symbol->address, sizeof *here);
            return symbol->managed                                                    ? MANAGED
                   : REAL(hipGetSymbolAddress)(here, symbol->address) == hipSuccess ? DEVICE
                                                                                      : UNKNOWN;
        }
    return UNKNOWN;
}

struct image *image_first(void)
{
    pthread_mutex_lock(&lock);
    struct image *first = images;
    pthread_mutex_unlock(&lock);
    return first;
}

void image_spare(struct image *image)
{
    pthread_mutex_lock(&lock);
    image->next_spare = spare;
    spare = image;
    pthread_mutex_unlock(&lock);
}
