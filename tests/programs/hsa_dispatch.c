/* A program on HSA itself: saxpy by packets, on queues that wait for each other, that are full, of
 * several threads, and with partial groups.
 *
 *     hsa_dispatch SAXPY.co [leave]
 *
 * Every result is checked. The last line is PASSED. With `leave` it ends without hsa_shut_down, as HIP programs do.
 */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 1000, BLOCK = 256, SMALL_QUEUE = 64, MANY = 210, THREADS = 4, EACH = 10 };
enum { FENCES = 2 << 9 | 2 << 11, BARRIER = 1 << 8 };

#define CHECK(call)                                                            \
    do {                                                                       \
        hsa_status_t check_status = (call);                                    \
        if (check_status != HSA_STATUS_SUCCESS) {                              \
            printf("%d: %s gave %x\n", __LINE__, #call, check_status);        \
            exit(1);                                                           \
        }                                                                      \
    } while (0)
#define REQUIRE(condition)                                                     \
    do {                                                                       \
        if (!(condition)) {                                                    \
            printf("%d: not so: %s\n", __LINE__, #condition);                  \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

struct arguments { uint32_t n; float a; const float *x; float *y; };

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t pool;
static uint64_t kernel;
static uint32_t private_bytes, group_bytes;
static atomic_uint launches;

static hsa_status_t find_agent(hsa_agent_t agent, void *unused)
{
    hsa_device_type_t type;
    (void)unused;
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU && !gpu.handle)
        gpu = agent;
    if (type == HSA_DEVICE_TYPE_CPU && !cpu.handle)
        cpu = agent;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_pool(hsa_amd_memory_pool_t found, void *unused)
{
    hsa_amd_segment_t segment;
    uint32_t flags = 0;
    (void)unused;
    CHECK(hsa_amd_memory_pool_get_info(found, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    CHECK(hsa_amd_memory_pool_get_info(found, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    if (segment == HSA_AMD_SEGMENT_GLOBAL && flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED)
        pool = found;
    return HSA_STATUS_SUCCESS;
}

static void *allocate(size_t bytes)
{
    void *memory;
    CHECK(hsa_amd_memory_pool_allocate(pool, bytes, 0, &memory));
    CHECK(hsa_amd_agents_allow_access(1, &gpu, NULL, memory));
    return memory;
}

static hsa_executable_t load(const char *path)
{
    FILE *file = fopen(path, "rb");
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    hsa_executable_symbol_t symbol;
    REQUIRE(file);
    CHECK(hsa_code_object_reader_create_from_file(fileno(file), &reader));
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    CHECK(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
    CHECK(hsa_executable_freeze(executable, NULL));
    CHECK(hsa_executable_get_symbol_by_name(executable, "saxpy.kd", &gpu, &symbol));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &private_bytes));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &group_bytes));
    fclose(file);
    return executable;
}

static void failed(hsa_status_t status, hsa_queue_t *queue, void *data)
{
    (void)queue, (void)data;
    printf("the queue gave %x\n", status);
    exit(1);
}

static hsa_queue_t *make_queue(uint32_t size, hsa_queue_type32_t type)
{
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(gpu, size, type, failed, NULL, UINT32_MAX, UINT32_MAX, &queue));
    return queue;
}

static hsa_signal_t make_signal(void)
{
    hsa_signal_t signal;
    CHECK(hsa_signal_create(1, 0, NULL, &signal));
    return signal;
}

static void wait_for(hsa_signal_t signal)
{
    while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) > 0)
        continue;
}

/* A packet of 64 bytes, when there is room for it. */
static void put(hsa_queue_t *queue, void *packet, uint16_t header)
{
    uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size)
        continue;
    char *place = (char *)queue->base_address + index % queue->size * 64;
    memcpy(place + 2, (char *)packet + 2, 62);
    __atomic_store_n((uint16_t *)place, header, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

static void dispatch(hsa_queue_t *queue, const struct arguments *arguments, hsa_signal_t done, uint16_t barrier)
{
    hsa_kernel_dispatch_packet_t packet = {
        .setup = 1, .workgroup_size_x = BLOCK, .workgroup_size_y = 1, .workgroup_size_z = 1, .grid_size_x = ITEMS,
        .grid_size_y = 1, .grid_size_z = 1, .private_segment_size = private_bytes, .group_segment_size = group_bytes,
        .kernel_object = kernel, .kernarg_address = (void *)arguments, .completion_signal = done};
    put(queue, &packet, HSA_PACKET_TYPE_KERNEL_DISPATCH | FENCES | barrier);
    launches++;
}

static void barrier_after(hsa_queue_t *queue, hsa_signal_t first, hsa_signal_t done)
{
    hsa_barrier_and_packet_t packet = {.dep_signal = {first}, .completion_signal = done};
    put(queue, &packet, HSA_PACKET_TYPE_BARRIER_AND | FENCES | BARRIER);
}

static struct arguments *make_arguments(float a)
{
    struct arguments *arguments = allocate(sizeof *arguments);
    float *x = allocate(ITEMS * sizeof *x), *y = allocate(ITEMS * sizeof *y);
    for (int i = 0; i < ITEMS; i++)
        x[i] = (float)i, y[i] = 1;
    *arguments = (struct arguments){ITEMS, a, x, y};
    return arguments;
}

/* After so many launches. */
static void check(const struct arguments *arguments, int times)
{
    for (int i = 0; i < ITEMS; i++)
        REQUIRE(arguments->y[i] == 1 + (float)times * arguments->a * (float)i);
}

static const hsa_signal_t NONE;

/* The program's signal is complete, and has the launch's times, before a barrier that comes after it is. */
static void in_order(hsa_queue_t *queue)
{
    struct arguments *arguments = make_arguments(2);
    hsa_amd_profiling_dispatch_time_t time = {0, 0};
    for (int i = 0; i < 5; i++) {
        hsa_signal_t one = make_signal(), two = make_signal();
        dispatch(queue, arguments, one, BARRIER);
        barrier_after(queue, NONE, two);
        wait_for(two);
        REQUIRE(hsa_signal_load_scacquire(one) == 0);
        CHECK(hsa_amd_profiling_get_dispatch_time(gpu, one, &time));
        check(arguments, i + 1);
        hsa_signal_destroy(one);
        hsa_signal_destroy(two);
    }
    printf("times %s\n", time.start && time.end >= time.start ? "are there" : "are not there");
}

/* What is put on the first queue waits for what is put on the second later. */
static void crosswise(hsa_queue_t *first, hsa_queue_t *second)
{
    struct arguments *one = make_arguments(1), *two = make_arguments(3);
    hsa_signal_t begin = make_signal(), end = make_signal();
    barrier_after(first, begin, NONE);
    dispatch(first, one, end, BARRIER);
    dispatch(second, two, begin, BARRIER);
    wait_for(end);
    check(one, 1);
    check(two, 1);
    hsa_signal_destroy(begin);
    hsa_signal_destroy(end);
}

/* More launches than packets fit, with and without signals and barrier bits. */
static void full(hsa_queue_t *queue)
{
    struct arguments *ordered = make_arguments(1), *free = make_arguments(3);
    hsa_signal_t all, last = make_signal();
    CHECK(hsa_signal_create(MANY / 2, 0, NULL, &all));
    for (int i = 0; i < MANY; i++)
        dispatch(queue, i % 3 ? ordered : free, i % 2 ? all : NONE, i % 3 ? BARRIER : 0);
    barrier_after(queue, NONE, last);
    wait_for(last);
    wait_for(all);
    check(ordered, MANY * 2 / 3);
    check(free, MANY / 3);
    hsa_signal_destroy(all);
    hsa_signal_destroy(last);
}

/* A queue full of packets that wait for what their thread does only then. */
static void held(hsa_queue_t *queue)
{
    struct arguments *arguments = make_arguments(2);
    hsa_signal_t go = make_signal(), last = make_signal();
    int room = (int)queue->size - 2;
    barrier_after(queue, go, NONE);
    for (int i = 0; i < room; i++)
        dispatch(queue, arguments, NONE, BARRIER);
    barrier_after(queue, NONE, last);
    hsa_signal_store_screlease(go, 0);
    wait_for(last);
    check(arguments, room);
    hsa_signal_destroy(go);
    hsa_signal_destroy(last);
}

/* Each thread has a queue of its own, for itself alone. */
static void *use_queue(void *unused)
{
    hsa_queue_t *queue = make_queue(SMALL_QUEUE, HSA_QUEUE_TYPE_SINGLE);
    struct arguments *arguments = make_arguments(1);
    for (int i = 0; i < EACH; i++) {
        hsa_signal_t done = make_signal();
        dispatch(queue, arguments, done, i % 2 ? BARRIER : 0);
        wait_for(done);
        check(arguments, i + 1);
        hsa_signal_destroy(done);
    }
    CHECK(hsa_queue_destroy(queue));
    return unused;
}

static void parallel(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, use_queue, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int count, char **words)
{
    REQUIRE(count > 1);
    CHECK(hsa_init());
    CHECK(hsa_iterate_agents(find_agent, NULL));
    CHECK(hsa_amd_agent_iterate_memory_pools(cpu, find_pool, NULL));
    hsa_executable_t executable = load(words[1]);
    hsa_queue_t *first = make_queue(SMALL_QUEUE, HSA_QUEUE_TYPE_MULTI), *second = make_queue(1024, HSA_QUEUE_TYPE_MULTI);
    hsa_queue_t *single = make_queue(SMALL_QUEUE, HSA_QUEUE_TYPE_SINGLE);
    CHECK(hsa_amd_profiling_set_profiler_enabled(first, 1));
    in_order(first);
    crosswise(first, second);
    full(first);
    held(first);
    full(single);
    parallel();
    printf("%u launches\nPASSED\n", launches);
    fflush(stdout);
    if (count > 2)
        return 0;
    CHECK(hsa_queue_destroy(first));
    CHECK(hsa_queue_destroy(second));
    CHECK(hsa_queue_destroy(single));
    CHECK(hsa_executable_destroy(executable));
    CHECK(hsa_shut_down());
    return 0;
}
