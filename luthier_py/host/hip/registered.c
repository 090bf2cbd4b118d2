/* Memory of the program that is registered, and where it lies in the arena. */
#include "pinned.h"

struct registration *registrations;
struct window *windows;
pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

uintptr_t device_address(uintptr_t address)
{
    for (const struct window *w = windows; w; w = w->next)
        if (w->start <= address && address < w->end)
            return w->device + (address - w->start);
    return 0;
}

const struct registration *covering(uintptr_t start, uintptr_t end, const struct registration *but)
{
    for (const struct registration *r = registrations; r; r = r->next)
        if (r != but && r->address < end && start < r->address + r->bytes)
            return r;
    return NULL;
}

uintptr_t pinned_device(const void *address, uintptr_t *start)
{
    pthread_mutex_lock(&registering);
    const struct registration *r = covering((uintptr_t)address, (uintptr_t)address + 1, NULL);
    *start = r ? r->address : 0;
    uintptr_t device = r ? device_address((uintptr_t)address) : 0;
    pthread_mutex_unlock(&registering);
    return device;
}
