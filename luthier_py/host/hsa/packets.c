/* What is put on queues: dispatches of selected kernels become dispatches of their copies.
 *
 * A packet with the barrier bit comes after the launches before it are complete for the program, which is when their
 * results are read: a barrier-and packet before it waits for that. So does one before the next launch of the same copy,
 * whose variables that launch uses. Work-groups keep their size, and what the program requests beyond the kernel's
 * needs stays.
 */
#include "hsa_tool.h"

/* Barrier-and packets for all of these dependencies. */
static void add_barriers(struct queue *queue, const struct dependencies *dependencies)
{
    for (size_t i = 0; i < dependencies->count; i += BARRIER_SIGNALS) {
        union packet packet = {.barrier = {.header = PACKET_BARRIER_AND | HEADER_ACQUIRE_SYSTEM}};
        for (size_t j = 0; j < BARRIER_SIGNALS && i + j < dependencies->count; j++) {
            packet.barrier.after[j] = dependency_signal(dependencies->at[i + j]);
            dependency_note(queue, dependencies->at[i + j]);
        }
        queue_add(queue, &packet);
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
    if (!tool_selects(1, index))
        return NULL;
    if (kernel)
        return instance_for(kernel, queue);
    tool_passes(&said, "kernels run as they are that were not loaded as part of an executable");
    return NULL;
}

/* What the program requests beyond the kernel's needs stays. */
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

static struct in_flight *start_in_flight(struct instance *instance, const struct told_of *launch, struct dispatch *dispatch)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct in_flight about = {.instance = instance, .application = dispatch->completion, .launch = *launch};
    if (instance->loaded.sized && !(about.memory = memory_begin(&instance->loaded, launch, NULL)))
        return NULL;
    struct in_flight *in_flight = in_flight_start(&about);
    if (!in_flight && !atomic_flag_test_and_set(&said))
        say("luthier: launches run as they are: the HSA runtime has no more signals");
    if (!in_flight) {
        memory_end(&instance->loaded, about.memory, NULL);
        return NULL;
    }
    dispatch->completion = in_flight->awaited.done;
    dispatch->header = (uint16_t)((dispatch->header & ~HEADER_FENCES) | HEADER_ACQUIRE_SYSTEM | HEADER_RELEASE_SYSTEM);
    return in_flight;
}

static void add_dispatch(struct queue *queue, union packet *packet, struct dependencies *before, struct instance *instance,
                         unsigned long index)
{
    struct dispatch *dispatch = &packet->dispatch;
    struct shape shape;
    for (int i = 0; i < 3; i++) {
        shape.block[i] = dispatch->block[i];
        shape.grid[i] = groups(dispatch->items[i], dispatch->block[i]);
    }
    struct told_of launch = copy_told(&instance->loaded, index, &shape);
    queue->used = true;
    if (settings.per_launch && instance->dependency)
        dependencies_add(before, instance->dependency);
    add_barriers(queue, before);
    struct in_flight *in_flight = settings.per_launch ? start_in_flight(instance, &launch, dispatch) : NULL;
    if (in_flight) {
        dependency_leave(instance->dependency);
        instance->dependency = dependency_keep(in_flight->dependency);
        dependencies_add(&queue->pending, in_flight->dependency);
    }
    if (!settings.per_launch) {
        instance_begin(instance, &launch, NULL); /* launches of it that still run have these, too */
        instance_note(instance, &launch);
    }
    if (in_flight || !settings.per_launch)
        exchange(dispatch, instance);
    queue_add(queue, packet);
}

static void rewrite(struct queue *queue, union packet packet)
{
    bool dispatch = (packet.header & HEADER_TYPE) == PACKET_DISPATCH;
    unsigned long index = 0;
    struct instance *instance = dispatch ? select_copy(queue, &packet.dispatch, &index) : NULL;
    struct dependencies before = {0};
    if (packet.header & HEADER_BARRIER) {
        for (size_t i = 0; i < queue->pending.count; i++)
            dependencies_add(&before, queue->pending.at[i]);
        dependencies_clear(&queue->pending);
    }
    if (instance)
        add_dispatch(queue, &packet, &before, instance, index);
    else {
        add_barriers(queue, &before);
        queue_add(queue, &packet);
    }
    dependencies_clear(&before);
    queue_mark(queue);
}

void rewrite_packets(const void *packets, uint64_t count, uint64_t index, void *data, packet_writer *write)
{
    struct queue *queue = data;
    const union packet *packet = packets;
    (void)index;
    for (uint64_t i = 0; i < count; i++) {
        while (!batch_reserve(&queue->backlog, queue->pending.count + 4))
            continue; /* there is memory again */
        rewrite(queue, packet[i]);
    }
    queue_give(queue, write);
}
