/* Queues and what is put on them: dispatches of selected kernels become dispatches of their copies.
 *
 * ROCr hands over each packet before the device sees it (hsa_amd_queue_intercept_register), and keeps what does not fit on
 * the queue as long as all that a packet becomes is written in one call (InterceptQueue::Submit). A packet with the barrier
 * bit comes after the launches before it are complete for the program, which is when their results are read: a barrier-and
 * packet before it waits for that, and one before the next launch of the same copy, whose variables it uses.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hsa_tool.h"

struct passing { struct passing *next; struct gate *gate; uint64_t packets; };

struct queue {
    struct queue *next;
    hsa_queue_t *handle;
    hsa_agent_t agent;
    queue_error *error; /* the program's */
    void *data;
    atomic_bool dead, used;
    struct gates pending;      /* of launches that a barrier bit comes after */
    uint64_t written;          /* packets so far */
    struct passing *first, **last; /* gates that written packets wait at, which may not have begun */
    pthread_mutex_t lock;      /* of these two */
};

static struct queue *queues;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct batch { union packet *at; size_t count, room; };

static bool reserve(struct batch *batch, size_t more)
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

static void add(struct queue *queue, struct batch *batch, const union packet *packet)
{
    batch->at[batch->count++] = *packet;
    queue->written++;
}

static void note_passing(struct queue *queue, struct gate *gate)
{
    struct passing *passing = malloc(sizeof *passing);
    if (!passing)
        return; /* its gate is never used again */
    *passing = (struct passing){NULL, gate, queue->written};
    pthread_mutex_lock(&queue->lock);
    *queue->last = passing;
    queue->last = &passing->next;
    pthread_mutex_unlock(&queue->lock);
}

void queue_passed(struct queue *queue, uint64_t packets)
{
    pthread_mutex_lock(&queue->lock);
    for (struct passing *passing; (passing = queue->first) && passing->packets < packets;) {
        queue->first = passing->next;
        gate_leave(passing->gate);
        free(passing);
    }
    if (!queue->first)
        queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
}

/* Barrier-and packets for all of these gates, which their packets keep. */
static void add_barriers(struct queue *queue, struct batch *batch, struct gates *gates)
{
    for (size_t i = 0; i < gates->count; i += BARRIER_SIGNALS) {
        union packet packet = {.barrier = {.header = PACKET_BARRIER_AND | HEADER_ACQUIRE_SYSTEM}};
        for (size_t j = 0; j < BARRIER_SIGNALS && i + j < gates->count; j++) {
            packet.barrier.after[j] = gate_signal(gates->at[i + j]);
            note_passing(queue, gate_keep(gates->at[i + j]));
        }
        add(queue, batch, &packet);
    }
}

static uint32_t groups(uint32_t items, uint32_t block) { return block ? (items + block - 1) / block : 0; }

/* This launch's copy, or NULL where the original is to run. */
static struct instance *select_copy(struct queue *queue, const struct dispatch *dispatch, unsigned long *index)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct kernel *kernel = kernel_at(dispatch->kernel_object);
    if (kernel && kernel->own && !(tool_on() && settings.own_kernels))
        return NULL;
    *index = launches_seen++;
    if (!tool_selects(*index, 1))
        return NULL;
    if (kernel)
        return instance_for(kernel, queue);
    launches_selected++;
    if (!atomic_flag_test_and_set(&said))
        say("luthier: kernels run as they are that were not loaded as part of an executable");
    return NULL;
}

/* What the program has asked for beyond what the kernel needs stays. */
static uint32_t exchanged(uint32_t asked, uint32_t original, uint32_t copy)
{
    return copy + (asked > original ? asked - original : 0);
}

static void exchange(struct dispatch *dispatch, const struct instance *instance)
{
    const struct kernel *kernel = instance->kernel;
    dispatch->kernel_object = instance->object;
    dispatch->private_bytes = exchanged(dispatch->private_bytes, kernel->private_bytes, instance->private_bytes);
    dispatch->group_bytes = exchanged(dispatch->group_bytes, kernel->group_bytes, instance->group_bytes);
}

static struct flight *start_flight(struct queue *queue, struct instance *instance, unsigned long index,
                                   const struct shape *shape, struct dispatch *dispatch)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct flight about = {.instance = instance, .queue = queue, .application = dispatch->completion, .index = index,
                           .packets = queue->written, .shape = *shape};
    struct flight *flight = flight_start(&about);
    if (!flight && !atomic_flag_test_and_set(&said))
        say("luthier: launches run as they are: the HSA runtime has no more signals");
    if (!flight)
        return NULL;
    dispatch->completion = flight->done;
    dispatch->header = (uint16_t)((dispatch->header & ~HEADER_FENCES) | HEADER_ACQUIRE_SYSTEM | HEADER_RELEASE_SYSTEM);
    return flight;
}

static void add_dispatch(struct queue *queue, struct batch *batch, union packet *packet, struct gates *before,
                         struct instance *instance, unsigned long index)
{
    struct dispatch *dispatch = &packet->dispatch;
    struct shape shape;
    for (int i = 0; i < 3; i++) {
        shape.block[i] = dispatch->block[i];
        shape.grid[i] = groups(dispatch->items[i], dispatch->block[i]);
    }
    queue->used = true;
    if (settings.per_launch && instance->gate)
        gates_add(before, instance->gate);
    add_barriers(queue, batch, before);
    struct flight *flight = NULL;
    struct gate *gate = NULL;
    if (settings.per_launch && (flight = start_flight(queue, instance, index, &shape, dispatch))) {
        gate = flight->gate;
        gate_leave(instance->gate);
        instance->gate = gate_keep(gate);
        gates_add(&queue->pending, gate);
    }
    if (!settings.per_launch)
        instance_note(instance, index, &shape);
    if (flight || !settings.per_launch)
        exchange(dispatch, instance);
    add(queue, batch, packet);
}

static void rewrite(struct queue *queue, struct batch *batch, union packet packet)
{
    bool dispatch = (packet.header & HEADER_TYPE) == PACKET_DISPATCH;
    unsigned long index = 0;
    struct instance *instance = dispatch ? select_copy(queue, &packet.dispatch, &index) : NULL;
    struct gates before = {0};
    if (packet.header & HEADER_BARRIER) {
        for (size_t i = 0; i < queue->pending.count; i++)
            gates_add(&before, queue->pending.at[i]);
        gates_clear(&queue->pending);
    }
    if (instance)
        add_dispatch(queue, batch, &packet, &before, instance, index);
    else {
        add_barriers(queue, batch, &before);
        add(queue, batch, &packet);
    }
    gates_clear(&before);
}

static void rewrite_all(const void *packets, uint64_t count, uint64_t index, void *data, packet_writer *write)
{
    struct queue *queue = data;
    struct batch batch = {0};
    const union packet *packet = packets;
    (void)index;
    for (uint64_t i = 0; i < count; i++)
        if (reserve(&batch, queue->pending.count + 3))
            rewrite(queue, &batch, packet[i]);
        else { /* no memory: this one as it is */
            write(batch.at, batch.count);
            write(&packet[i], 1);
            batch.count = 0;
        }
    if (batch.count)
        write(batch.at, batch.count);
    free(batch.at);
}

static void queue_failed(hsa_status_t status, hsa_queue_t *source, void *data)
{
    struct queue *queue = data;
    queue->dead = true;
    queue->error(status, queue->handle ? queue->handle : source, queue->data);
}

static struct queue *queue_new(hsa_agent_t agent, queue_error *error, void *data)
{
    uint32_t type = 0;
    if (!runtime_there || rocr.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) != HSA_SUCCESS ||
        type != HSA_DEVICE_TYPE_GPU)
        return NULL;
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue) {
        queue->agent = agent;
        queue->error = error;
        queue->data = data;
        queue->last = &queue->first;
        pthread_mutex_init(&queue->lock, NULL);
    }
    return queue;
}

hsa_status_t tool_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type, queue_error *error, void *data,
                               uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t **handle)
{
    struct queue *queue = queue_new(agent, error, data);
    if (queue && rocr.hsa_amd_queue_intercept_create(agent, size, type, error ? queue_failed : NULL, queue, private_bytes,
                                                     group_bytes, handle) == HSA_SUCCESS) {
        queue->handle = *handle;
        pthread_mutex_lock(&lock);
        queue->next = queues;
        queues = queue;
        pthread_mutex_unlock(&lock);
        return rocr.hsa_amd_queue_intercept_register(*handle, rewrite_all, queue);
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
    hsa_status_t status = rocr.hsa_queue_destroy(handle);
    if (!queue)
        return status;
    gates_clear(&queue->pending);
    queue_passed(queue, UINT64_MAX);
    instances_leave(queue);
    if (!flights_of(queue)) /* else one of them may still land */
        free(queue);
    return status;
}

static void pause_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL); }

static bool patient(const struct queue *queue, const struct timespec *since)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pause_a_little();
    return !queue->dead && now.tv_sec - since->tv_sec < PATIENCE_SECONDS;
}

/* A packet that is done when all before it are. */
static void drain(struct queue *queue)
{
    hsa_queue_t *handle = queue->handle;
    struct timespec since;
    hsa_signal_t done;
    clock_gettime(CLOCK_MONOTONIC, &since);
    if (rocr.hsa_signal_create(1, 0, NULL, &done) != HSA_SUCCESS)
        return;
    uint64_t index = rocr.hsa_queue_add_write_index_screlease(handle, 1);
    while (index - rocr.hsa_queue_load_read_index_scacquire(handle) >= handle->size)
        if (!patient(queue, &since))
            return;
    union packet *place = (union packet *)handle->packets + index % handle->size;
    union packet packet = {.barrier = {.completion = done}};
    memcpy(place->bytes + 2, packet.bytes + 2, PACKET_BYTES - 2);
    __atomic_store_n(&place->header, PACKET_BARRIER_AND | HEADER_BARRIER, __ATOMIC_RELEASE);
    rocr.hsa_signal_store_screlease(handle->doorbell, (int64_t)index);
    while (rocr.hsa_signal_load_scacquire(done))
        if (!patient(queue, &since))
            return; /* the packet may still come to it */
    rocr.hsa_signal_destroy(done);
}

void queues_drain(void)
{
    pthread_mutex_lock(&lock);
    for (struct queue *queue = queues; queue; queue = queue->next)
        if (atomic_exchange(&queue->used, false) && !queue->dead)
            drain(queue);
    pthread_mutex_unlock(&lock);
}
