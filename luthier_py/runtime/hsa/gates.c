/* Signals that open when the results of a launch were read, and that packets wait for. */
#include <stdlib.h>

#include "hsa_tool.h"

struct gate { struct gate *next; hsa_signal_t signal; atomic_uint references; };

struct passing { struct passing *next; struct gate *gate; uint64_t packets; };

static struct gate *spare;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct gate *take_spare(void)
{
    pthread_mutex_lock(&lock);
    struct gate *gate = spare;
    spare = gate ? gate->next : NULL;
    pthread_mutex_unlock(&lock);
    if (gate)
        rocr.hsa_signal_store_screlease(gate->signal, 1);
    return gate;
}

struct gate *gate_new(hsa_agent_t agent)
{
    struct gate *gate = take_spare();
    if (!gate && (gate = calloc(1, sizeof *gate)) &&
        rocr.hsa_signal_create(1, 1, &agent, &gate->signal) != HSA_SUCCESS) { /* only the device waits */
        free(gate);
        gate = NULL;
    }
    if (gate)
        gate->references = 1;
    return gate;
}

void gate_open(struct gate *gate) { rocr.hsa_signal_store_screlease(gate->signal, 0); }
bool gate_shut(const struct gate *gate) { return rocr.hsa_signal_load_scacquire(gate->signal) != 0; }
hsa_signal_t gate_signal(const struct gate *gate) { return gate->signal; }

struct gate *gate_keep(struct gate *gate)
{
    gate->references++;
    return gate;
}

void gate_leave(struct gate *gate)
{
    if (!gate || --gate->references)
        return;
    pthread_mutex_lock(&lock);
    gate->next = spare;
    spare = gate;
    pthread_mutex_unlock(&lock);
}

/* Those that have opened meanwhile go. */
static void clean(struct gates *gates)
{
    size_t kept = 0;
    for (size_t i = 0; i < gates->count; i++)
        if (gate_shut(gates->at[i]))
            gates->at[kept++] = gates->at[i];
        else
            gate_leave(gates->at[i]);
    gates->count = kept;
}

bool gates_add(struct gates *gates, struct gate *gate)
{
    clean(gates);
    for (size_t i = 0; i < gates->count; i++)
        if (gates->at[i] == gate)
            return true;
    if (!gate_shut(gate))
        return true;
    if (gates->count == gates->room) {
        struct gate **more = realloc(gates->at, (2 * gates->room + 8) * sizeof *more);
        if (!more)
            return false;
        gates->at = more;
        gates->room = 2 * gates->room + 8;
    }
    gates->at[gates->count++] = gate_keep(gate);
    return true;
}

void gates_clear(struct gates *gates)
{
    for (size_t i = 0; i < gates->count; i++)
        gate_leave(gates->at[i]);
    free(gates->at);
    *gates = (struct gates){0};
}

void gates_drop(void)
{
    for (struct gate *gate; (gate = spare);) {
        spare = gate->next;
        rocr.hsa_signal_destroy(gate->signal);
        free(gate);
    }
}

void gate_note(struct queue *queue, struct gate *gate)
{
    struct passing *passing = malloc(sizeof *passing);
    gate_keep(gate);
    if (!passing)
        return; /* it is never used again */
    *passing = (struct passing){NULL, gate, queue->made};
    pthread_mutex_lock(&queue->lock);
    *queue->last = passing;
    queue->last = &passing->next;
    pthread_mutex_unlock(&queue->lock);
}

void gates_passed(struct queue *queue, uint64_t packets)
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
