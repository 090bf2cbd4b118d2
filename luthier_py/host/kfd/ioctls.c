/* Ioctls for the driver: each is sent to the worker whole, with the arrays that its arguments point to, and returned;
 * its effects in this process follow on success. */
#include <errno.h>
#include <linux/ioctl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kfd.h"

enum { ARRAYS = 3, MOST_BYTES = 1 << 20, ARGUMENT_BYTES = 1 << _IOC_SIZEBITS };
enum { KFD = 'K', DRM = 'd' };                  /* kinds of ioctl */
enum { DRM_VERSION = 0x00, AMDGPU_INFO = 0x45 }; /* of drm.h and amdgpu_drm.h */

/* An array that arguments point to: where in them the pointer is, and the count; bytes of each. */
struct array { uint16_t pointer, count, each; };
static const struct { char type; uint8_t number; bool out; struct array arrays[ARRAYS]; } POINTERS[] = {
    {KFD, SET_CU_MASK, false, {{8, 4, 0}}}, /* its count is of bits */
    {KFD, GET_TILE_CONFIG, true, {{0, 16, 4}, {8, 20, 4}}},
    {KFD, GET_PROCESS_APERTURES_NEW, true, {{0, 8, 56}}},
    {KFD, MAP_MEMORY_TO_GPU, false, {{8, 16, 4}}},
    {KFD, UNMAP_MEMORY_FROM_GPU, false, {{8, 16, 4}}},
    {KFD, GET_DMABUF_INFO, true, {{8, 16, 1}}},
    {DRM, DRM_VERSION, true, {{24, 16, 1}, {40, 32, 1}, {56, 48, 1}}},
    {DRM, AMDGPU_INFO, true, {{0, 8, 1}}},
};

struct call { char args[ARGUMENT_BYTES]; struct { char *data; char *at; uint32_t bytes; } arrays[ARRAYS]; int count; bool out; };

static uint64_t field(const struct call *call, unsigned offset, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, call->args + offset, bytes);
    return value;
}

static int gather_array(struct call *call, const struct array *array, bool long_count)
{
    uint64_t count = field(call, array->count, long_count ? 8 : 4);
    uint64_t bytes = array->each ? count * array->each : count / 32 * 4;
    char *at = (char *)(uintptr_t)field(call, array->pointer, 8);
    if (count > MOST_BYTES || bytes > MOST_BYTES)
        return EINVAL;
    if (!at)
        bytes = 0;
    char *data = calloc(1, bytes + 1);
    if (!data)
        return ENOMEM;
    int own = call->count++;
    call->arrays[own].data = data;
    call->arrays[own].at = at;
    call->arrays[own].bytes = (uint32_t)bytes;
    return bytes && !call->out && !read_safely(data, at, bytes) ? EFAULT : 0;
}

static int gather(struct call *call, unsigned long request)
{
    for (size_t i = 0; i < sizeof POINTERS / sizeof *POINTERS; i++)
        if (POINTERS[i].type == (char)_IOC_TYPE(request) && POINTERS[i].number == _IOC_NR(request))
            for (int k = 0; k < ARRAYS && POINTERS[i].arrays[k].count; k++) {
                call->out = POINTERS[i].out;
                int error = gather_array(call, &POINTERS[i].arrays[k], POINTERS[i].type == DRM && POINTERS[i].number == 0);
                if (error)
                    return error;
            }
    return 0;
}

/* The reply: errno, arguments, arrays. What the driver does not write to may be read-only. */
static int scatter(struct call *call, const struct reply *reply, size_t bytes)
{
    struct cursor cursor = {reply->data, reply->data + reply->bytes, false};
    int error = reply->status ? EIO : (int)take32(&cursor);
    const void *changed = take(&cursor, bytes);
    if (!cursor.bad)
        memcpy(call->args, changed, bytes);
    for (int i = 0; i < call->count && !cursor.bad; i++) {
        const void *data = take(&cursor, call->arrays[i].bytes);
        if (data && call->out && !error && !write_safely(call->arrays[i].at, data, call->arrays[i].bytes))
            return EFAULT;
    }
    if (cursor.bad)
        return error ? error : EIO;
    return error;
}

static int ask(int node, unsigned long request, struct call *call)
{
    struct { int32_t node; uint32_t request; } head = {node, (uint32_t)request};
    struct part parts[2 + ARRAYS] = {{&head, sizeof head}, {call->args, _IOC_SIZE(request)}};
    for (int i = 0; i < call->count; i++)
        parts[2 + i] = (struct part){call->arrays[i].data, call->arrays[i].bytes};
    struct reply reply;
    if (!driver_ask(MESSAGE_IOCTL, parts, 2 + call->count, &reply))
        return EIO;
    int error = scatter(call, &reply, _IOC_SIZE(request));
    free(reply.data);
    return error;
}

static void free_again(uint64_t handle)
{
    struct call undo = {.count = 0};
    memcpy(undo.args, &handle, sizeof handle);
    ask(KFD_NODE, _IOW(KFD, FREE_MEMORY_OF_GPU, uint64_t), &undo);
}

/* Memory of another process's device is the program's, too. */
static int follow_import(const struct import_handle *imported)
{
    static const uint64_t PLACE = (1ul << 48) - 4096; /* the rest has flags, see Buffers.handle_of */
    uint64_t place = ((uint64_t)imported->shared.place[1] << 32 | imported->shared.place[0]) & PLACE;
    int error = pages_import(imported->address, (size_t)imported->shared.pages * 4096, imported->shared.worker, place);
    if (error)
        free_again(imported->handle);
    return error;
}

/* Memory of the program's own, outside of the arena, becomes shared, or private again. */
static int follow_memory(unsigned long request, struct call *call)
{
    const struct alloc_memory *made = (void *)call->args;
    if (_IOC_NR(request) == FREE_MEMORY_OF_GPU)
        pages_give_back(field(call, 0, 8));
    if (_IOC_NR(request) != ALLOC_MEMORY_OF_GPU || !(made->flags & USER_POINTER) || arena_has((void *)made->offset))
        return 0;
    int error = file_share(made->handle, made->offset, made->bytes);
    if (error < 0)
        error = pages_share(made->handle, made->offset, made->bytes);
    if (error)
        free_again(made->handle);
    return error;
}

/* What else an ioctl that went well means in this process. */
static int follow(unsigned long request, struct call *call)
{
    enum { OPERATION = 20, OPERATION_RUNTIME = 13, MODE = 24 };
    const struct create_queue *queue = (void *)call->args;
    if (_IOC_TYPE(request) != KFD)
        return 0;
    switch (_IOC_NR(request)) {
    case CREATE_QUEUE:
        doorbells_watch(queue->queue, (uint32_t)((queue->gpu - FIRST_GPU) * DOORBELL_BYTES + queue->doorbell_offset % DOORBELL_BYTES) / 8,
                    queue->write_pointer);
        return 0;
    case RUNTIME_ENABLE: /* r_debug, mode */
        doorbells_debug(field(call, 8, 4) & 1 ? (void *)(uintptr_t)field(call, 0, 8) : NULL);
        return 0;
    case DBG_TRAP: /* mask, r_debug, process, operation, mode */
        if (field(call, OPERATION, 4) == OPERATION_RUNTIME)
            doorbells_debug(field(call, MODE, 4) & 1 ? (void *)(uintptr_t)field(call, 8, 8) : NULL);
        return 0;
    case IPC_IMPORT_HANDLE:
        return follow_import((const void *)call->args);
    default:
        return follow_memory(request, call);
    }
}

/* What this process has to do before the request to the worker. */
static int prepare(unsigned number, const struct call *call)
{
    if (number == DESTROY_QUEUE)
        doorbells_forget((uint32_t)field(call, 0, 4)); /* afterwards its number may be another thread's queue's */
    if (number == ALLOC_MEMORY_OF_GPU)
        svm_sweep(); /* for its memory, and for what is known of pages that are to be registered */
    return number == SVM ? svm_prepare((const void *)call->args) : 0;
}

/* By the worker, with the arrays. */
static int ask_whole(int node, unsigned long request, struct call *call)
{
    int error = gather(call, request);
    if (!error && node == KFD_NODE)
        error = prepare(_IOC_NR(request), call);
    if (!error)
        error = ask(node, request, call);
    if (!error)
        error = follow(request, call);
    for (int i = 0; i < call->count; i++)
        free(call->arrays[i].data);
    return error;
}

/* Arguments are read and written as the request says (_IOW, _IOR), written whatever comes of it (kfd_ioctl). */
static int carry_out(int node, unsigned long request, void *args)
{
    struct call call = {.count = 0};
    size_t bytes = _IOC_SIZE(request);
    bool ended = driver_ended();
    if (_IOC_DIR(request) & _IOC_WRITE && !read_safely(call.args, args, bytes))
        return EFAULT;
    int error = node == KFD_NODE ? event_ioctl(_IOC_NR(request), call.args) : -1;
    if (error < 0)
        error = ended ? EIO : ask_whole(node, request, &call);
    return _IOC_DIR(request) & _IOC_READ && !write_safely(args, call.args, bytes) ? EFAULT : error;
}

API int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *args = va_arg(list, void *);
    va_end(list);
    int node = _IOC_TYPE(request) == KFD || _IOC_TYPE(request) == DRM ? node_behind(fd) : NO_NODE;
    if (node == NO_NODE)
        return (int)syscall(SYS_ioctl, fd, request, args);
    int error = carry_out(node, request, args);
    if (error)
        errno = error;
    return error ? -1 : 0;
}
