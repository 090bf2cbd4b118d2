/* What launches cost a program: FILE COUNT prints seconds of each step as JSON. FILE is the code object of vector_add. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct module *module_t;
typedef struct kernel *kernel_t;
typedef struct stream *stream_t;
typedef struct event *event_t;
int hipModuleLoadData(module_t *module, const void *image);
int hipModuleGetFunction(kernel_t *kernel, module_t module, const char *name);
int hipModuleLaunchKernel(kernel_t kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned lds_bytes, stream_t stream, void **args, void **extra);
int hipMalloc(void **address, size_t bytes);
int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
int hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, stream_t stream);
int hipMemsetAsync(void *to, int value, size_t bytes, stream_t stream);
int hipDeviceSynchronize(void);
int hipStreamCreate(stream_t *stream);
int hipStreamWaitEvent(stream_t stream, event_t event, unsigned flags);
int hipEventCreate(event_t *event);
int hipEventRecord(event_t event, stream_t stream);

enum { ITEMS = 64, TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3 };

static void must(int error, const char *what)
{
    if (error)
        fprintf(stderr, "%s gave %d\n", what, error), exit(1);
}

#define MUST(call) must(call, #call)

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static float *a, *b, *c;
static kernel_t kernel;
static stream_t streams[2];
static event_t events[2];

static void launch_of(unsigned groups, stream_t stream)
{
    void *args[] = {&a, &b, &c};
    MUST(hipModuleLaunchKernel(kernel, groups, 1, 1, ITEMS, 1, 1, 0, stream, args, NULL));
}

static void alone(int i) { (void)i; launch_of(1, NULL); }
static void shapes(int i) { launch_of(1 + (unsigned)i % 4, NULL); }
static void waited(int i) { alone(i); MUST(hipDeviceSynchronize()); }
static void timed(int i) { alone(i); MUST(hipEventRecord(events[i % 2], NULL)); }
static void filled(int i) { MUST(hipMemsetAsync(c, 0, 4 * ITEMS, NULL)); alone(i); }
static void copied(int i) { alone(i); MUST(hipMemcpyAsync(b, a, 4 * ITEMS, ON_DEVICE, NULL)); }

static void in_turn(int i)
{
    launch_of(1, streams[i % 2]);
    MUST(hipEventRecord(events[i % 2], streams[i % 2]));
    MUST(hipStreamWaitEvent(streams[(i + 1) % 2], events[i % 2], 0));
}

static void step(const char *name, void (*one)(int), int count)
{
    MUST(hipDeviceSynchronize());
    double start = now();
    for (int i = 0; i < count; i++)
        one(i);
    MUST(hipDeviceSynchronize());
    printf(", \"%s\": %g", name, (now() - start) / count);
}

int main(int words, char **word)
{
    FILE *file = fopen(words == 3 ? word[1] : "", "rb");
    if (!file)
        return fprintf(stderr, "usage: launches FILE COUNT\n"), 2;
    static char image[1 << 16];
    if (fread(image, 1, sizeof image, file) == sizeof image)
        return fprintf(stderr, "%s is too large\n", word[1]), 2;
    int count = atoi(word[2]), few = count < 15 ? 1 : count / 15;
    double start = now();
    float host[ITEMS];
    module_t module;
    float **buffers[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++)
        MUST(hipMalloc((void **)buffers[i], 4 * (8 + ITEMS) * ITEMS));
    for (int i = 0; i < ITEMS; i++)
        host[i] = (float)i;
    MUST(hipMemcpy(a, host, sizeof host, TO_DEVICE));
    MUST(hipMemcpy(b, host, sizeof host, TO_DEVICE));
    MUST(hipModuleLoadData(&module, image));
    MUST(hipModuleGetFunction(&kernel, module, "vector_add"));
    for (int i = 0; i < 2; i++) {
        MUST(hipStreamCreate(&streams[i]));
        MUST(hipEventCreate(&events[i]));
    }
    waited(0);
    printf("{\"from the first call to the end of the first launch\": %g", now() - start);
    if (count > 1) {
        step("launches in a row", alone, count);
        step("of four shapes in turn", shapes, count);
        step("each with an event behind it", timed, count);
        step("each with a fill before it", filled, few);
        step("each with a copy behind it", copied, few);
        step("on two streams that wait for each other", in_turn, few);
        step("each waited for", waited, few);
    }
    printf("}\n");
    MUST(hipMemcpy(host, c, sizeof host, TO_HOST));
    for (int i = 0; i < ITEMS; i++)
        if (host[i] != 2.0f * (float)i)
            return fprintf(stderr, "element %d is %g\n", i, host[i]), 1;
    return 0;
}
