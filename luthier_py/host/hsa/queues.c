/* The program's queues, with a tool between them and the device: made, drained and destroyed. */
#include <stdlib.h>
#include <time.h>

#include "hsa_tool.h"

enum { LEAST_PACKETS = 64, QUEUE_SINGLE = 1, QUEUE_COOPERATIVE = 2 };

static struct queue *queues;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

/* An agent has one cooperative queue, which every create call returns. Its intercepting queue would destroy it as well,
 * and ROCr ends with SIGSEGV in hsa_shut_down (6.4.3, 7.2.4): so the intercepting queue stays, and the agent's is
 * destroyed twice, since it was returned for the intercepting queue and is here. */
static hsa_status_t give_back(const struct queue *queue)
{
    hsa_queue_t *lent;
    hsa_status_t status = rocr.hsa_queue_create(queue->agent, LEAST_PACKETS, QUEUE_COOPERATIVE, NULL, NULL, 0, 0, &lent);
    for (int i = 0; i < 2 && status == HSA_SUCCESS; i++)
        status = rocr.hsa_queue_destroy(lent);
    return status;
}

hsa_status_t tool_queue_destroy(hsa_queue_t *handle)
{
    struct queue *queue = take_queue(handle);
    if (!queue)
        return rocr.hsa_queue_destroy(handle);
    pthread_mutex_lock(&queue->use);
    queue->gone = true;
    pthread_mutex_unlock(&queue->use);
    hsa_status_t status = queue->shared ? give_back(queue) : rocr.hsa_queue_destroy(handle);
    dependencies_clear(&queue->pending);
    dependencies_passed(queue, UINT64_MAX);
    instances_leave(queue);
    queue_leave(queue);
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
    while (!(put = queue_put_barrier(queue, HEADER_BARRIER, done)) && patient(queue, &since))
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
        queue_leave(queue);
    }
}
