/* CODE HOW SEED: launches, copies, fills, events on several streams, as the seed has it, and the same on the host in the order of
 * the calls. CODE has kernels bump, *word = 3 * *word + value, and hold, which ends when *word is not 0.
 *
 * HOW: "random"; "mixed", with the thread's own stream among the streams; "fault", with an address in between that is wrong; "held", behind a kernel that waits for the program.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct module *module_t;
typedef struct kernel *kernel_t;
typedef struct stream *stream_t;
typedef struct event *event_t;
int hipModuleLoadData(module_t *module, const void *image);
int hipModuleUnload(module_t module);
int hipModuleGetFunction(kernel_t *kernel, module_t module, const char *name);
int hipModuleLaunchKernel(kernel_t kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned lds_bytes, stream_t stream, void **args, void **extra);
int hipMalloc(void **address, size_t bytes);
int hipHostMalloc(void **address, size_t bytes, unsigned flags);
int hipFree(void *address);
int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
int hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, stream_t stream);
int hipMemsetD8Async(void *to, unsigned char value, size_t count, stream_t stream);
int hipMemsetD16Async(void *to, unsigned short value, size_t count, stream_t stream);
int hipMemsetD32Async(void *to, int value, size_t count, stream_t stream);
int hipDeviceSynchronize(void);
int hipStreamCreate(stream_t *stream);
int hipStreamSynchronize(stream_t stream);
int hipStreamWaitEvent(stream_t stream, event_t event, unsigned flags);
int hipEventCreate(event_t *event);
int hipEventRecord(event_t event, stream_t stream);
int hipEventElapsedTime(float *milliseconds, event_t start, event_t stop);

enum { STREAMS = 3, BUFFERS = 5, WORDS = 16, STEPS = 3000, HELD = 6000, TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, LOST = 700 };

static void must(int error, const char *what)
{
    if (error)
        fprintf(stderr, "%s gave %d\n", what, error), exit(1);
}

#define MUST(call) must(call, #call)

static uint64_t state;
static module_t module;
static kernel_t bump, hold;
static stream_t streams[STREAMS];
static event_t events[STREAMS], first, last;
static uint32_t *buffers[BUFFERS], expected[BUFFERS][WORDS];
static int stream_of[BUFFERS]; /* that touched it last */
static char image[1 << 16];

static unsigned roll(unsigned sides)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % sides;
}

static void load(void)
{
    MUST(hipModuleLoadData(&module, image));
    MUST(hipModuleGetFunction(&bump, module, "bump"));
    MUST(hipModuleGetFunction(&hold, module, "hold"));
}

static int launch(kernel_t kernel, void *word, uint64_t value, unsigned groups, stream_t stream)
{
    void *nothing = NULL, *args[] = {&word, &value, &nothing};
    return hipModuleLaunchKernel(kernel, groups, 1, 1, 64, 1, 1, 0, stream, args, NULL);
}

static void touch(int buffer, int stream)
{
    if (stream_of[buffer] == stream)
        return;
    MUST(hipEventRecord(events[stream], streams[stream_of[buffer]]));
    MUST(hipStreamWaitEvent(streams[stream], events[stream], 0));
    stream_of[buffer] = stream;
}

static void copy(int to, int from, int stream)
{
    size_t count = 1 + roll(WORDS), at = roll((unsigned)(WORDS - count) + 1), source = roll((unsigned)(WORDS - count) + 1);
    touch(from, stream);
    MUST(hipMemcpyAsync(buffers[to] + at, buffers[from] + source, 4 * count, ON_DEVICE, streams[stream]));
    memmove(expected[to] + at, expected[from] + source, 4 * count);
}

static void fill(int to, int stream)
{
    size_t count = 1 + roll(WORDS);
    uint32_t value = roll(1 << 30);
    unsigned bytes = 1u << roll(3);
    if (bytes == 1)
        MUST(hipMemsetD8Async(buffers[to], (unsigned char)value, 4 * count, streams[stream]));
    else if (bytes == 2)
        MUST(hipMemsetD16Async(buffers[to], (unsigned short)value, 2 * count, streams[stream]));
    else
        MUST(hipMemsetD32Async(buffers[to], (int)value, count, streams[stream]));
    for (size_t i = 0; i < 4 * count / bytes; i++)
        memcpy((char *)expected[to] + i * bytes, &value, bytes);
}

static void move_to(int buffer, int stream)
{
    uint32_t *larger;
    MUST(hipMalloc((void **)&larger, 4 * WORDS * (1 + roll(300))));
    MUST(hipMemcpyAsync(larger, buffers[buffer], 4 * WORDS, ON_DEVICE, streams[stream]));
    MUST(hipFree(buffers[buffer]));
    buffers[buffer] = larger;
}

static void step(void)
{
    int buffer = (int)roll(BUFFERS), stream = (int)roll(STREAMS);
    unsigned kind = roll(100), word = roll(WORDS);
    uint32_t value = roll(1000);
    touch(buffer, stream);
    if (kind < 70) {
        MUST(launch(bump, buffers[buffer] + word, value, 1, streams[stream]));
        expected[buffer][word] = 3 * expected[buffer][word] + value;
    } else if (kind < 80)
        copy(buffer, (int)roll(BUFFERS), stream);
    else if (kind < 90)
        fill(buffer, stream);
    else if (kind < 93) {
        uint32_t host[WORDS];
        MUST(hipMemcpyAsync(host, buffers[buffer], sizeof host, TO_HOST, streams[stream]));
        MUST(hipStreamSynchronize(streams[stream]));
        if (memcmp(host, expected[buffer], sizeof host))
            fprintf(stderr, "buffer %d is wrong in between\n", buffer), exit(1);
    } else if (kind < 95)
        MUST(hipMemcpyAsync(buffers[buffer], expected[(int)roll(BUFFERS)], 0, TO_DEVICE, streams[stream]));
    else if (kind < 97)
        move_to(buffer, stream);
    else if (kind < 98)
        MUST(hipStreamSynchronize(streams[stream]));
    else if (kind < 99) {
        MUST(hipModuleUnload(module));
        load();
    }
}

static void check(void)
{
    uint32_t host[WORDS];
    float milliseconds;
    MUST(hipEventRecord(last, NULL));
    MUST(hipDeviceSynchronize());
    MUST(hipEventElapsedTime(&milliseconds, first, last));
    for (int i = 0; i < BUFFERS; i++) {
        MUST(hipMemcpy(host, buffers[i], sizeof host, TO_HOST));
        if (memcmp(host, expected[i], sizeof host))
            fprintf(stderr, "buffer %d is wrong at the end\n", i), exit(1);
    }
    if (milliseconds < 0)
        fprintf(stderr, "%g ms passed\n", milliseconds), exit(1);
}

static void hold_and_go_on(void)
{
    volatile uint32_t *flag;
    MUST(hipHostMalloc((void **)&flag, 64, 0));
    *flag = 0;
    MUST(launch(hold, (void *)flag, 0, 1, streams[0]));
    for (int i = 0; i < HELD; i++) {
        MUST(launch(bump, buffers[0] + i % WORDS, (uint64_t)i, 1, streams[0]));
        expected[0][i % WORDS] = 3 * expected[0][i % WORDS] + (uint32_t)i;
    }
    *flag = 1;
}

int main(int count, char **words)
{
    FILE *file = count == 4 ? fopen(words[1], "rb") : NULL;
    if (!file || !fread(image, 1, sizeof image, file))
        return 2;
    state = strtoull(words[3], NULL, 10);
    load();
    for (int i = 0; i < STREAMS; i++) {
        MUST(hipStreamCreate(&streams[i]));
        MUST(hipEventCreate(&events[i]));
    }
    if (strcmp(words[2], "mixed") == 0)
        streams[1] = (stream_t)2;
    for (int i = 0; i < BUFFERS; i++) {
        MUST(hipMalloc((void **)&buffers[i], 4 * WORDS));
        MUST(hipMemcpy(buffers[i], expected[i], sizeof expected[i], TO_DEVICE));
    }
    MUST(hipEventCreate(&first));
    MUST(hipEventCreate(&last));
    MUST(hipEventRecord(first, NULL));
    if (strcmp(words[2], "held") == 0)
        hold_and_go_on();
    for (int i = 0; i < STEPS; i++)
        step();
    if (strcmp(words[2], "fault") == 0) {
        int error = launch(bump, (void *)64, 1, 1, streams[0]);
        for (int i = 0; i < 100 && !error; i++)
            error = launch(bump, buffers[0], 1, 1, streams[0]);
        if (error && error != LOST)
            fprintf(stderr, "a launch gave %d\n", error), exit(1);
        return hipDeviceSynchronize() == LOST && hipDeviceSynchronize() == LOST ? 3 : 1;
    }
    check();
    return 0;
}
