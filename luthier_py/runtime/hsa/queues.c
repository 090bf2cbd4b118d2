/* The program's queues, with a tool between them and the device, and no more packets on these than fit.
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

enum { LEAST_PACKETS = 64, MARKERS = 8, SLACK = 4, QUEUE_SINGLE = 1, QUEUE_COOPERATIVE = 2 };

static struct queue *queues;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct marker { struct awaited awaited; struct queue *queue; uint64_t packets; };

static void pause_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

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
    return false; /* whoever has filled it rings the doorbell */
}

static void leave(struct queue *queue)
{
    if (--queue->references)
        return;
    free(queue->backlog.at);
    free(queue);
}

static bool put_barrier(struct queue *queue, uint16_t bits, hsa_signal_t done)
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
    gates_passed(queue, marker->packets);
    queue->taken = marker->packets;
    if (queue->behind && !queue->single)
        put_barrier(queue, 0, (hsa_signal_t){0});
    leave(queue);
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

static void queue_failed(hsa_status_t status, hsa_queue_t *source, void *data)
{
    struct queue *queue = data;
    queue->dead = true;
    queue->error(status, queue->handle ? queue->handle : source, queue->data);
}

static struct queue *queue_new(hsa_agent_t agent, uint32_t type, queue_error *error, void *data)
{
    uint32_t device = 0;
    if (!runtime_there || rocr.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &device) != HSA_SUCCESS ||
        device != HSA_DEVICE_TYPE_GPU)
        return NULL;
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue) {
        queue->agent = agent;
        queue->single = type == QUEUE_SINGLE;
        queue->shared = type == QUEUE_COOPERATIVE;
        queue->error = error;
        queue->data = data;
        queue->last = &queue->first;
        queue->references = 1;
        pthread_mutex_init(&queue->lock, NULL);
        pthread_mutex_init(&queue->use, NULL);
    }
    return queue;
}

hsa_status_t tool_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type, queue_error *error, void *data,
                               uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t **handle)
{
    struct queue *queue = queue_new(agent, type, error, data);
    uint32_t least = size && size < LEAST_PACKETS ? LEAST_PACKETS : size;
    if (queue && rocr.hsa_amd_queue_intercept_create(agent, least, type, error ? queue_failed : NULL, queue, private_bytes,
                                                     group_bytes, handle) == HSA_SUCCESS) {
        queue->handle = *handle;
        pthread_mutex_lock(&lock);
        queue->next = queues;
        queues = queue;
        pthread_mutex_unlock(&lock);
        return rocr.hsa_amd_queue_intercept_register(*handle, rewrite_packets, queue);
    }
    hsa_status_t status = rocr.hsa_queue_create(agent, size, type, error, data, private_bytes, group_bytes, handle);
    if (queue && status == HSA_SUCCESS)
        say("luthier: launches on a queue of %u packets run as they are: the HSA runtime does not let tools into it", size);
    free(queue);
    return status;
}

static struct queue *take_queue(const hsa_queue_t *handle)
{
    pthread_mutex_lock(&lock);
    struct queue **place = &queues;
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    struct queue *queue = *place;
    if (queue)
        *place = queue->next;
    pthread_mutex_unlock(&lock);
    return queue;
}

hsa_status_t tool_queue_destroy(hsa_queue_t *handle)
{
    struct queue *queue = take_queue(handle);
    if (!queue)
        return rocr.hsa_queue_destroy(handle);
    pthread_mutex_lock(&queue->use);
    queue->gone = true;
    pthread_mutex_unlock(&queue->use);
    /* An agent has one cooperative queue, which it lends to whoever makes one. What intercepts that queue would take it along
     * when it goes, and ROCr ends with SIGSEGV in hsa_shut_down (6.4.3): so it stays until then. */
    hsa_status_t status = queue->shared ? HSA_SUCCESS : rocr.hsa_queue_destroy(handle);
    gates_clear(&queue->pending);
    gates_passed(queue, UINT64_MAX);
    instances_leave(queue);
    leave(queue);
    return status;
}

static bool patient(const struct queue *queue, const struct timespec *since)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pause_a_little();
    return !queue->dead && !queue->gone && now.tv_sec - since->tv_sec < PATIENCE_SECONDS;
}

/* A packet that is done when all before it are. */
static void drain(struct queue *queue)
{
    struct timespec since;
    hsa_signal_t done;
    clock_gettime(CLOCK_MONOTONIC, &since);
    if (rocr.hsa_signal_create(1, 0, NULL, &done) != HSA_SUCCESS)
        return;
    bool put = false;
    while (!(put = put_barrier(queue, HEADER_BARRIER, done)) && patient(queue, &since))
        continue;
    while (put && rocr.hsa_signal_load_scacquire(done))
        if (!patient(queue, &since))
            return; /* the packet may still come to it */
    rocr.hsa_signal_destroy(done);
}

static struct queue *used_queue(void)
{
    pthread_mutex_lock(&lock);
    struct queue *queue = queues;
    while (queue && !atomic_exchange(&queue->used, false))
        queue = queue->next;
    if (queue)
        queue->references++;
    pthread_mutex_unlock(&lock);
    return queue;
}

void queues_drain(void)
{
    for (struct queue *queue; (queue = used_queue());) {
        if (!queue->dead)
            drain(queue);
        leave(queue);
    }
}
