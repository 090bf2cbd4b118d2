/* What kernels ask of the program while they run: printf, the message of a failed assert, and memory for their malloc.
 *
 * The buffer is that of AMD's device library (ockl, hostcall_impl.cl; layouts as its bitcode has them): a wave takes a
 * packet, puts its number on a stack and spins until the packet is answered. A thread answers, in the program itself, so
 * that what kernels print is ordered with what the program prints. What they print without asking (-mprintf-kind=buffered)
 * the worker hands over when a launch has ended, and waits until it is printed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "guest.h"
#include "memory.h"
#include "modules.h"

enum { PACKETS = 1 << 16, LANES = 64, SLOTS = 8, SERVICE_PRINTF = 2, SERVICE_MEMORY = 3, BEGIN = 1, END = 2 };

struct header { uint64_t next, active; uint32_t service; _Atomic uint32_t waits; };
struct payload { uint64_t slots[LANES][SLOTS]; };
struct buffer {
    struct header *headers;
    struct payload *payloads;
    uint64_t doorbell; /* of a signal, which no thread waits for */
    _Atomic uint64_t free_stack, ready_stack;
    uint64_t mask;     /* of a stack's word: the packet's number; above it, a tag against reuse */
    uint64_t signal[8];
    _Atomic uint64_t printed; /* ours: address of what a launch has printed, messages behind their lengths, until a 0 */
};
/* A message: words that arrive a few at a time. */
struct message { uint64_t *words; size_t count; bool used; };
/* A line's file, and how many of its characters were written; negative once that failed. */
struct output { FILE *file; int count; };

static struct buffer *buffer;
static struct message *messages;
static size_t message_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(struct output *out, const char *form, ...)
{
    va_list values;
    va_start(values, form);
    int said = vfprintf(out->file, form, values);
    out->count = said < 0 || out->count < 0 ? -1 : out->count + said;
    va_end(values);
}

/* One conversion, of which `form` has flags, width, precision and h; the next word. `wide`: it had l, ll, j, z or t. */
static const uint64_t *put_one(struct output *out, const char *form, size_t length, bool wide, char kind,
                               const uint64_t *word, const uint64_t *end)
{
    char whole[80];
    bool integer = strchr("diouxX", kind);
    double number;
    if (word == end || length + 4 > sizeof whole || (kind == 's' && !memchr(word, 0, (size_t)(end - word) * sizeof *word)))
        return end;
    snprintf(whole, sizeof whole, "%.*s%s%c", (int)length, form, integer && wide ? "ll" : "", kind);
    if (integer && wide)
        put(out, whole, (long long)*word);
    else if (integer || kind == 'c')
        put(out, whole, (int)*word);
    else if (kind == 's') {
        put(out, whole, (const char *)word);
        return word + strlen((const char *)word) / sizeof *word + 1;
    } else if (kind == 'p')
        put(out, whole, (void *)(uintptr_t)*word);
    else if (strchr("eEfFgGaA", kind)) {
        memcpy(&number, word, sizeof number);
        put(out, whole, number);
    }
    return word + 1;
}

/* A conversion from its percent sign on: where it ends in the format. A star's value is written in its place. */
static const char *conversion(struct output *out, const char *at, const uint64_t **word, const uint64_t *end)
{
    char form[64] = "%";
    size_t length = 1;
    bool wide = false;
    for (at++; *at && strchr("-+ #0123456789.*hlLqjzt", *at); at++)
        if (*at == '*' && *word < end && length + 12 < sizeof form)
            length += (size_t)snprintf(form + length, sizeof form - length, "%d", (int)*(*word)++);
        else if (strchr("lqjzt", *at))
            wide = true;
        else if (!strchr("L*", *at) && length + 1 < sizeof form)
            form[length++] = *at;
    if (*at == '%')
        put(out, "%%");
    else if (*at)
        *word = put_one(out, form, length, wide, *at, *word, end);
    return *at ? at + 1 : at;
}

/* The first word says where to (bit 0: stderr); then the format and strings, ended by 0 and filled up to words. What
 * printf(3) would return.
 */
static int print(const uint64_t *words, size_t count)
{
    const uint64_t *word = words + 1, *end = words + count;
    if (count < 2 || !memchr(word, 0, (size_t)(end - word) * sizeof *word))
        return -1;
    struct output out = {words[0] & 1 ? stderr : stdout, 0};
    const char *at = (const char *)word;
    word += strlen(at) / sizeof *word + 1;
    flockfile(out.file);
    while (*at) {
        size_t plain = strcspn(at, "%");
        if (plain)
            put(&out, "%.*s", (int)plain, at);
        at = at[plain] ? conversion(&out, at + plain, &word, end) : at + plain;
    }
    funlockfile(out.file);
    return out.count;
}

/* What a launch has left to be printed, of which the worker waits to hear. */
static void print_left(void)
{
    uint64_t left = atomic_load_explicit(&buffer->printed, memory_order_acquire);
    if (!left)
        return;
    for (const uint64_t *at = (const uint64_t *)(uintptr_t)left; *at; at += 1 + *at)
        print(at + 1, *at);
    atomic_store_explicit(&buffer->printed, 0, memory_order_release);
}

static uint64_t new_message(void)
{
    for (size_t i = 0; i < message_room; i++)
        if (!messages[i].used) {
            messages[i] = (struct message){NULL, 0, true};
            return i;
        }
    size_t room = message_room ? 2 * message_room : LANES;
    struct message *larger = realloc(messages, room * sizeof *larger);
    if (!larger)
        return UINT64_MAX;
    memset(larger + message_room, 0, (room - message_room) * sizeof *larger);
    messages = larger;
    message_room = room;
    return new_message();
}

static void append(struct message *message, const uint64_t *words, size_t count)
{
    uint64_t *larger = realloc(message->words, (message->count + count + 1) * sizeof *larger);
    if (!larger)
        return;
    memcpy(larger + message->count, words, count * sizeof *words);
    message->words = larger;
    message->count += count;
}

/* One lane's part of a message: a word of flags, length and the message's number, then the content. The answer is that
 * word again, or, to the last part, what printf returns.
 */
static void answer_print(uint64_t *slots)
{
    enum { LENGTH_SHIFT = 5, LENGTH_MASK = 7, NUMBER_SHIFT = 8, FLAGS = 0xff };
    uint64_t head = slots[0], number = head & BEGIN ? new_message() : head >> NUMBER_SHIFT;
    if (number >= message_room || !messages[number].used)
        return;
    struct message *message = &messages[number];
    append(message, slots + 1, head >> LENGTH_SHIFT & LENGTH_MASK);
    slots[0] = (head & FLAGS & ~(uint64_t)BEGIN) | number << NUMBER_SHIFT;
    if (!(head & END))
        return;
    slots[0] = (uint64_t)(int64_t)print(message->words, message->count);
    free(message->words);
    *message = (struct message){NULL, 0, false};
}

/* A lane's address to be freed, or 0 and the bytes that it requests; the answer is where they are, or NULL. Kernels
 * run, so nothing may wait for the device here.
 */
static void answer_memory(uint64_t *slots)
{
    void *place = NULL;
    if (!slots[0])
        memory_allocate(&place, slots[1], KIND_DEVICE, MEMORY_OF_KERNELS, NULL);
    else
        memory_release((void *)(uintptr_t)slots[0]);
    slots[0] = (uintptr_t)place;
}

static void answer_lane(uint32_t service, uint64_t *slots)
{
    if (service == SERVICE_PRINTF)
        answer_print(slots);
    else if (service == SERVICE_MEMORY)
        answer_memory(slots);
}

/* The packets that wait, the oldest first; false when there is none. */
static bool answer(void)
{
    uint64_t first = 0, next, ready = atomic_exchange(&buffer->ready_stack, 0);
    if (!ready)
        return false;
    for (uint64_t at = ready; at; at = next) { /* turn the stack over */
        struct header *header = &buffer->headers[at & buffer->mask];
        next = header->next;
        header->next = first;
        first = at;
    }
    for (uint64_t at = first; at; at = next) {
        struct header *header = &buffer->headers[at & buffer->mask];
        next = header->next; /* before the wave takes its packet back */
        for (int lane = 0; lane < LANES; lane++)
            if (header->active >> lane & 1)
                answer_lane(header->service, buffer->payloads[at & buffer->mask].slots[lane]);
        atomic_store_explicit(&header->waits, 0, memory_order_release);
    }
    return true;
}

static void *serve(void *unused)
{
    const struct timespec busy = {.tv_nsec = 100 * 1000}, idle = {.tv_nsec = 2 * 1000 * 1000};
    for (; !unused; print_left())
        if (!answer())
            nanosleep(device_done(device_submitted()) ? &idle : &busy, NULL);
    return NULL;
}

static hipError_t make_buffer(void)
{
    struct buffer *made;
    size_t bytes = sizeof *made + PACKETS * (sizeof(struct header) + sizeof(struct payload));
    hipError_t error = memory_allocate((void **)&made, bytes, KIND_HOST, 0, NULL);
    if (error)
        return error;
    made->headers = (struct header *)(made + 1);
    made->payloads = (struct payload *)(made->headers + PACKETS);
    made->doorbell = (uintptr_t)made->signal;
    made->mask = PACKETS - 1;
    for (uint64_t i = 1; i < PACKETS; i++) /* number 0 has a tag, for a word of 0 is no packet */
        made->headers[i].next = i == 1 ? PACKETS : i - 1;
    made->free_stack = PACKETS - 1;
    error = device_ask(MESSAGE_HOSTCALLS, (uint64_t[]){(uintptr_t)made, (uintptr_t)&made->printed}, 2, NULL);
    buffer = error ? NULL : made;
    return error;
}

hipError_t hostcalls_ready(void)
{
    pthread_mutex_lock(&lock);
    hipError_t error = buffer ? hipSuccess : make_buffer();
    static bool serving;
    if (!error && !serving) {
        serving = thread_start(serve, NULL);
        error = serving ? hipSuccess : hipErrorOutOfMemory;
    }
    pthread_mutex_unlock(&lock);
    return error;
}
