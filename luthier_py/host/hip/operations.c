/* What streams carry out: launches by the worker, as well as what is to be copied or filled behind them; all else here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "checks.h"
#include "device.h"
#include "operations.h"

static atomic_ulong launches; /* that were handed to the device */

uint64_t launches_count(void) { return launches; }
void launches_after_fork(void) { launches = 0; }

static hipError_t launch(const struct operation *operation, uint64_t *command)
{
    const struct kernel *kernel = operation->launch.kernel;
    if (!handle_is(kernel, HANDLE_KERNEL))
        return hipErrorInvalidHandle; /* of a module that is unloaded: graphs keep launches for long */
    struct dim3 grid = operation->launch.grid, block = operation->launch.block, lacking = operation->launch.lacking;
    uint32_t head[] = {kernel->module->id, kernel->index, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                       operation->launch.lds_bytes, operation->launch.cooperative, operation->launch.number,
                       operation->launch.count, lacking.x, lacking.y, lacking.z, 0};
    struct part parts[] = {{head, sizeof head}, {operation->launch.kernarg, operation->launch.bytes}};
    hipError_t error = device_submit(MESSAGE_LAUNCH, parts, 2, command);
    if (!error)
        launches++;
    return error;
}

/* Memory that HIP does not track may not be mapped: the kernel checks, without a fault. Rows of one width, many at a
 * time. */
static hipError_t copy_unknown(struct iovec *to, struct iovec *from, size_t rows)
{
    size_t bytes = rows * to->iov_len;
    ssize_t done = process_vm_readv(getpid(), to, rows, from, rows, 0);
    if (done < 0 && errno != EFAULT) /* a sandbox that forbids it */
        for (size_t i = 0; i < rows; i++, done = (ssize_t)bytes)
            memmove(to[i].iov_base, from[i].iov_base, to[i].iov_len);
    return done == (ssize_t)bytes ? hipSuccess : hipErrorInvalidValue;
}

enum { ROWS = 256 };
static const size_t LARGEST_ROW = 4 << 20; /* so that ROWS of them are less than the kernel copies at once */

struct rows { struct iovec to[ROWS], from[ROWS]; size_t count; };

/* What was put together until now; rows of a copy are alike but for the last piece of each. */
static hipError_t flush(struct rows *rows)
{
    hipError_t error = rows->count ? copy_unknown(rows->to, rows->from, rows->count) : hipSuccess;
    rows->count = 0;
    return error;
}

static hipError_t copy_pageable(struct rows *rows, char *to, const char *from, size_t bytes)
{
    hipError_t error = hipSuccess;
    for (size_t at = 0, piece; at < bytes && !error; at += piece) {
        piece = bytes - at < LARGEST_ROW ? bytes - at : LARGEST_ROW;
        if (rows->count == ROWS || (rows->count && rows->to[0].iov_len != piece))
            error = flush(rows);
        rows->to[rows->count] = (struct iovec){to + at, piece};
        rows->from[rows->count++] = (struct iovec){(char *)from + at, piece};
    }
    return error;
}

static hipError_t copy(const struct transfer *all)
{
    struct rows unknown;
    hipError_t error = hipSuccess;
    unknown.count = 0;
    for (size_t z = 0; z < all->depth; z++)
        for (size_t y = 0; y < all->height && !error; y++) {
            char *to = (char *)all->to + z * all->to_slice + y * all->to_pitch;
            const char *from = (const char *)all->from + z * all->from_slice + y * all->from_pitch;
            if (all->pageable)
                error = copy_pageable(&unknown, to, from, all->width);
            else
                memmove(to, from, all->width);
        }
    return error ? error : flush(&unknown);
}

static void fill_row(char *row, const struct fill *fill)
{
    if (fill->element == 1)
        memset(row, (int)fill->value, fill->count);
    else
        for (size_t i = 0; i < fill->count; i++)
            memcpy(row + i * fill->element, &fill->value, fill->element);
}

static hipError_t fill(const struct fill *all)
{
    for (size_t z = 0; z < all->depth; z++)
        for (size_t y = 0; y < all->height; y++)
            fill_row((char *)all->to + z * all->slice + y * all->pitch, all);
    return hipSuccess;
}

static bool is_one_row(size_t height, size_t depth) { return height == 1 && depth == 1; }

bool operation_is_near(const struct operation *operation)
{
    const struct transfer *copy = &operation->copy;
    const struct fill *fill = &operation->fill;
    if (operation->kind == OPERATION_COPY)
        return is_one_row(copy->height, copy->depth) && in_arena(copy->to) && in_arena(copy->from);
    return operation->kind == OPERATION_FILL && is_one_row(fill->height, fill->depth) && in_arena(fill->to) &&
           (fill->element == 1 || fill->element == 2 || fill->element == 4);
}

static hipError_t hand_over(const struct operation *operation, uint64_t *command)
{
    const struct transfer *copy = &operation->copy;
    const struct fill *fill = &operation->fill;
    if (operation->kind == OPERATION_COPY) {
        uint64_t words[] = {(uintptr_t)copy->to, (uintptr_t)copy->from, copy->width};
        return device_submit(MESSAGE_COPY, &(struct part){words, sizeof words}, 1, command);
    }
    uint64_t words[] = {(uintptr_t)fill->to, fill->count, fill->value, fill->element};
    return device_submit(MESSAGE_FILL, &(struct part){words, sizeof words}, 1, command);
}

hipError_t operation_carry_out(const struct operation *operation, bool now, uint64_t *command)
{
    hipError_t failure = device_wait(0); /* after a fault nothing touches memory any more */
    if (!now && !failure && operation_is_near(operation))
        return hand_over(operation, command);
    switch (operation->kind) {
    case OPERATION_LAUNCH: return failure ? failure : launch(operation, command);
    case OPERATION_COPY: return failure ? failure : copy(&operation->copy);
    case OPERATION_FILL: return failure ? failure : fill(&operation->fill);
    case OPERATION_FREE: return operation->free.release(operation->free.address);
    case OPERATION_CALL: operation->call.function(operation->call.data); return hipSuccess;
    default: return hipSuccess;
    }
}

hipError_t operation_copy(struct operation *to, const struct operation *from)
{
    *to = *from;
    if (from->kind != OPERATION_LAUNCH)
        return hipSuccess;
    to->launch.kernarg = malloc(from->launch.bytes + 1u);
    if (!to->launch.kernarg)
        return hipErrorOutOfMemory;
    memcpy(to->launch.kernarg, from->launch.kernarg, from->launch.bytes);
    return hipSuccess;
}

void operation_discard(struct operation *operation)
{
    if (operation->kind == OPERATION_LAUNCH)
        free(operation->launch.kernarg);
    *operation = (struct operation){.kind = OPERATION_NOTHING};
}
