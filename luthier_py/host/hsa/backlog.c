/* No more packets on a queue than fit.
 *
 * ROCr hands each packet to the tool and takes what it becomes (hsa_amd_queue_intercept_register). Up to ROCm 5.2 it loses
 * its order, or ends the program, when that does not fit (InterceptQueue::StoreRelaxed goes on after an overflow). So
 * markers among the packets, barrier-and packets with a signal, say how many the device has taken, and what does not fit
 * waits here. A packet in the program's queue brings the next chance to give; where only one thread may put packets on
 * the queue, that thread waits instead, as it would for a queue that is full.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hsa_tool.h"

enum { MARKERS = 8, SLACK = 4 };

struct marker { struct awaited awaited; struct queue *queue; uint64_t packets; };

void pause_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

bool batch_reserve(struct batch *batch, size_t more)
{
    if (batch->count + more <= batch->room)
        return true;
    size_t room = 2 * (batch->count + more);
    union packet *at = realloc(batch->at, room * sizeof *at);
    if (at) {
        batch->at = at;
        batch->room = room;
    }
    return at != NULL;
}

void queue_add(struct queue *queue, const union packet *packet)
{
    queue->backlog.at[queue->backlog.count++] = *packet;
    queue->made++;
}

/* From the program's side; false: there is no room. */
static bool put_packet(struct queue *queue, uint16_t bits, hsa_signal_t done)
{
    hsa_queue_t *handle = queue->handle;
    uint64_t read = rocr.hsa_queue_load_read_index_scacquire(handle);
    uint64_t write = rocr.hsa_queue_load_write_index_scacquire(handle);
    while (write - read < handle->size) {
        uint64_t found = rocr.hsa_queue_cas_write_index_scacq_screl(handle, write, write + 1);
        if (found == write) {
            union packet *place = (union packet *)handle->packets + write % handle->size;
            union packet packet = {.barrier = {.completion = done}};
            memcpy(place->bytes + 2, packet.bytes + 2, PACKET_BYTES - 2);
            __atomic_store_n(&place->header, (uint16_t)(PACKET_BARRIER_AND | bits), __ATOMIC_RELEASE);
            rocr.hsa_signal_store_screlease(handle->doorbell, (int64_t)write);
            return true;
        }
        write = found;
    }
    return false; /* the thread that filled it rings the doorbell */
}

void queue_leave(struct queue *queue)
{
    if (--queue->references)
        return;
    free(queue->backlog.at);
    free(queue);
}

bool queue_put_barrier(struct queue *queue, uint16_t bits, hsa_signal_t done)
{
    pthread_mutex_lock(&queue->use);
    bool put = !queue->gone && put_packet(queue, bits, done);
    pthread_mutex_unlock(&queue->use);
    return put;
}

static void marker_taken(struct awaited *awaited)
{
    struct marker *marker = (struct marker *)awaited;
    struct queue *queue = marker->queue;
    dependencies_passed(queue, marker->packets);
    queue->taken = marker->packets;
    if (queue->behind && !queue->single)
        queue_put_barrier(queue, 0, (hsa_signal_t){0});
    queue_leave(queue);
    free(marker);
}

void queue_mark(struct queue *queue)
{
    if (queue->made - queue->marked < queue->handle->size / MARKERS || queue->unmarked)
        return;
    struct marker *marker = malloc(sizeof *marker);
    if (marker)
        *marker = (struct marker){.awaited.action = marker_taken, .queue = queue, .packets = queue->made + 1};
    queue->references++;
    if (!marker || !await(&marker->awaited)) {
        queue->references--;
        queue->unmarked = true;
        free(marker);
        return;
    }
    union packet packet = {.barrier = {.header = PACKET_BARRIER_AND, .completion = marker->awaited.done}};
    queue_add(queue, &packet);
    queue->marked = queue->made;
}

static size_t fitting(const struct queue *queue)
{
    size_t size = queue->handle->size - SLACK, inside = queue->given - queue->taken;
    size_t room = queue->unmarked ? queue->backlog.count : inside < size ? size - inside : 0;
    return room < queue->backlog.count ? room : queue->backlog.count;
}

void queue_give(struct queue *queue, packet_writer *write)
{
    struct batch *backlog = &queue->backlog;
    queue->behind = true; /* before it is looked what fits: a marker that is taken meanwhile sees it */
    size_t count = fitting(queue);
    while (queue->single && !queue->dead && count < backlog->count) {
        pause_a_little();
        count = fitting(queue);
    }
    if (!count)
        return;
    queue->given += count;
    write(backlog->at, count); /* once: older runtimes do not take more */
    backlog->count -= count;
    memmove(backlog->at, backlog->at + count, backlog->count * sizeof *backlog->at);
    queue->behind = backlog->count != 0;
}
