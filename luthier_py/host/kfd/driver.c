/* The driver: a worker process that opens the devices and receives messages and requests. It is started when first
 * needed; when it ends, the device is lost. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"
#include "kfd.h"

static struct wire wire = {.fd = -1};
static char *files;
static _Atomic enum { COLD, READY, BROKEN } state;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

bool driver_wanted(void)
{
    const char *device = setting("LUTHIER_DEVICE");
    return device && strncmp(device, "emulator", 8) == 0 && !setting("LUTHIER_SYSFS");
}

static bool open_devices(const struct reply *reply)
{
    struct cursor cursor = {reply->data, reply->data + reply->bytes, false};
    uint32_t gpus = take32(&cursor);
    files = cursor.bad ? NULL : strdup(cursor.at);
    bool good = files && gpus <= MAX_GPUS;
    for (uint32_t i = 0; good && i <= gpus; i++)
        good = node_add();
    return good;
}

static bool start(void)
{
    struct reply reply;
    if (!arena_make() || !wire_start(&wire, "kfd", arena_file()))
        return false;
    if (!wire_call(&wire, MESSAGE_OPEN, NULL, 0, &reply)) {
        say("luthier: the worker process ended before it answered");
        return false;
    }
    bool good = reply.status == 0 && open_devices(&reply);
    free(reply.data);
    return good;
}

bool driver_ready(void)
{
    if (state == COLD) {
        pthread_mutex_lock(&starting);
        if (state == COLD)
            state = start() ? READY : BROKEN;
        pthread_mutex_unlock(&starting);
    }
    return state == READY;
}

static void gone(void)
{
    if (atomic_exchange(&state, BROKEN) != READY)
        return;
    if (wire_taken(&wire))
        say("luthier: the program has closed file descriptor %d, the way to its emulated device", wire.fd);
    else
        say("luthier: the worker process has ended, and the emulated device with it");
    events_lost();
}

bool driver_ended(void)
{
    if (state == READY && wire_gone(&wire))
        gone();
    return state != READY;
}

const char *driver_files(void)
{
    const char *given = setting("LUTHIER_SYSFS");
    return given ? given : driver_wanted() && driver_ready() ? files : NULL;
}

void driver_tell(uint32_t code, const struct part *parts, int count)
{
    if (!wire_send(&wire, code, parts, count))
        gone();
}

bool driver_ask(uint32_t code, const struct part *parts, int count, struct reply *reply)
{
    bool answered = wire_call(&wire, code, parts, count, reply);
    if (!answered)
        gone();
    return answered;
}

int driver_ask_file(uint32_t code, const void *head, size_t bytes, const char *name)
{
    struct part parts[] = {{head, bytes}, {name, strlen(name)}};
    struct reply reply;
    if (!driver_ask(code, parts, 2, &reply))
        return EIO;
    struct cursor cursor = {reply.data, reply.data + reply.bytes, false};
    int error = reply.status ? EIO : (int)take32(&cursor);
    free(reply.data);
    return error;
}

/* What still runs is no loss to report. */
__attribute__((destructor)) static void leave(void)
{
    if (state == READY)
        wire_send(&wire, MESSAGE_LEAVE, NULL, 0);
}

int driver_open(int node, int flags, const void *caller)
{
    if (!driver_ready()) {
        errno = ENODEV;
        return -1;
    }
    if (node == KFD_NODE && caller)
        arena_thunk(caller);
    return node_open(node, flags);
}

void driver_after_fork(void)
{
    wire_close(&wire);
    free(files);
    files = NULL;
    state = state == READY ? COLD : state;
    pthread_mutex_init(&starting, NULL);
}
