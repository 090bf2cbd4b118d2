/* What a device's memory holds, gives and takes back, and what a child of fork has of it: argv[1] says which. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int hipMalloc(void **address, size_t bytes);
int hipHostMalloc(void **address, size_t bytes, unsigned flags);
int hipMallocManaged(void **address, size_t bytes, unsigned flags);
int hipMallocAsync(void **address, size_t bytes, void *stream);
int hipFree(void *address);
int hipMemGetInfo(size_t *free_bytes, size_t *total);
int hipDeviceTotalMem(size_t *bytes, int device);
int hipMemset(void *address, int value, size_t bytes);
int hipMemsetAsync(void *address, int value, size_t bytes, void *stream);
int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
int hipDeviceSynchronize(void);
int hipGetDeviceCount(int *count);
int hipPointerGetAttributes(void *attributes, const void *address);
int hipEventCreate(void **event);
int hipEventRecord(void *event, void *stream);
int hipEventElapsedTime(float *milliseconds, void *start, void *stop);
int hipStreamSynchronize(void *stream);
int hipStreamCreate(void **stream);
int hipStreamDestroy(void *stream);
int hipFreeAsync(void *address, void *stream);
int hipMemPoolCreate(void **pool, const void *properties);
int hipMemPoolDestroy(void *pool);
int hipMallocFromPoolAsync(void **address, size_t bytes, void *pool, void *stream);
int hipMemPoolExportToShareableHandle(void *handle, void *pool, int type, unsigned flags);
int hipMemPoolImportFromShareableHandle(void **pool, void *handle, int type, unsigned flags);
int hipMemPoolExportPointer(void *exported, void *address);
int hipMemPoolImportPointer(void **address, void *pool, const void *exported);

static void *const PER_THREAD = (void *)2; /* hipStreamPerThread */
enum { OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, TO_DEVICE = 1, TO_HOST = 2 };
#define REQUIRE(good) do { if (!(good)) { printf("line %d: %s\n", __LINE__, #good); exit(1); } } while (0)

static size_t left(void)
{
    size_t bytes, total, same;
    REQUIRE(!hipMemGetInfo(&bytes, &total) && !hipDeviceTotalMem(&same, 0) && total == same && bytes <= total);
    return bytes;
}

/* As much as is said to be free can be had, and not a byte more; all of it comes back. */
static void limits(void)
{
    enum { PARTS = 64 };
    size_t all = left();
    void *whole, *more, *parts[PARTS];
    printf("%zu\n", all);
    for (int round = 0; round < 3; round++) {
        REQUIRE(!hipMalloc(&whole, all) && left() == 0);
        REQUIRE(hipMalloc(&more, 1) == OUT_OF_MEMORY && !more && hipMallocAsync(&more, 1, NULL) == OUT_OF_MEMORY);
        REQUIRE(!hipHostMalloc(&more, 4096, 0) && !hipFree(more));    /* that is the host's */
        REQUIRE(!hipMallocManaged(&more, 4096, 1) && !hipFree(more));
        REQUIRE(!hipFree(whole) && left() == all);
        REQUIRE(hipMalloc(&whole, all + 1) == OUT_OF_MEMORY && hipMalloc(&whole, (size_t)-1) == OUT_OF_MEMORY && left() == all);
        for (int i = 0; i < PARTS; i++)
            REQUIRE(!hipMalloc(&parts[i], all / PARTS));
        REQUIRE(left() == all % PARTS);
        for (int i = 0; i < PARTS; i += 2) /* in holes: there is a smaller one for each */
            REQUIRE(!hipFree(parts[i]) && !hipMalloc(&parts[i], all / PARTS - 4096));
        for (int i = 0; i < PARTS; i++)
            REQUIRE(!hipFree(parts[i]));
        REQUIRE(left() == all);
    }
}

/* 1 for bytes that this process has mapped. */
static int mapped(const void *address)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    ssize_t sent = write(ends[1], address, 1);
    REQUIRE(sent == 1 || errno == EFAULT);
    close(ends[0]), close(ends[1]);
    return sent == 1;
}

static void in_child(int *managed, void *device, void **events)
{
    int count, word = 0;
    float time;
    void *more;
    char attributes[64];
    size_t bytes;
    REQUIRE(!mapped(managed) && !mapped(device));
    REQUIRE(hipMalloc(&more, 16) == NOT_INITIALIZED && hipFree(device) == NOT_INITIALIZED);
    REQUIRE(hipMemcpy(&word, managed, 4, TO_HOST) == NOT_INITIALIZED && hipMemset(device, 0, 4) == NOT_INITIALIZED);
    REQUIRE(hipDeviceSynchronize() == NOT_INITIALIZED && hipStreamSynchronize(NULL) == NOT_INITIALIZED);
    REQUIRE(hipStreamSynchronize(PER_THREAD) == NOT_INITIALIZED);
    REQUIRE(hipGetDeviceCount(&count) == NOT_INITIALIZED && hipMemGetInfo(&bytes, &bytes) == NOT_INITIALIZED);
    REQUIRE(hipEventRecord(events[0], NULL) == NOT_INITIALIZED);
    REQUIRE(hipEventElapsedTime(&time, events[0], events[1]) == NOT_INITIALIZED);
    hipPointerGetAttributes(attributes, device); /* whatever it says */
    exit(7);
}

/* Used before: the child has nothing of it. Not used before: it has a device of its own. */
static void forked(int used)
{
    int *managed = NULL, status, word = 5;
    void *device = NULL, *events[2];
    if (used) {
        REQUIRE(!hipMallocManaged((void **)&managed, 4096, 1) && !hipMalloc(&device, 4096));
        REQUIRE(!hipMemcpy(device, &word, 4, TO_DEVICE));
        for (int i = 0; i < 2; i++)
            REQUIRE(!hipEventCreate(&events[i]) && !hipEventRecord(events[i], NULL));
        REQUIRE(!hipMemsetAsync(managed, 0, 4096, PER_THREAD) && !hipStreamSynchronize(PER_THREAD));
        *managed = 6;
    }
    pid_t child = fork();
    if (child == 0 && used)
        in_child(managed, device, events);
    REQUIRE(!hipMalloc(&device, 4096) && !hipMemsetAsync(device, child ? 1 : 2, 4096, PER_THREAD));
    REQUIRE(!hipStreamSynchronize(PER_THREAD));
    if (child == 0)
        exit(7);
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    REQUIRE(!hipMemcpy(&word, device, 4, TO_HOST) && word == 0x01010101 && (!used || *managed == 6));
}

static atomic_bool over;

static void *work(void *unused)
{
    while (!over) {
        void *stream, *event, *memory, *of_pool;
        REQUIRE(!hipStreamCreate(&stream) && !hipEventCreate(&event));
        REQUIRE(!hipMalloc(&memory, 4096) && !hipMallocAsync(&of_pool, 4096, stream));
        REQUIRE(!hipMemsetAsync(memory, 1, 4096, stream) && !hipEventRecord(event, stream));
        REQUIRE(!hipFreeAsync(of_pool, stream) && !hipStreamSynchronize(PER_THREAD) && !hipStreamSynchronize(stream));
        REQUIRE(!hipFree(memory) && !hipStreamDestroy(stream));
    }
    return unused;
}

/* Children that are made while threads are anywhere in the library end, and with their code. */
static void forked_at_any_time(void)
{
    enum { THREADS = 3, CHILDREN = 30 };
    pthread_t threads[THREADS];
    int status;
    void *memory;
    REQUIRE(!hipDeviceSynchronize());
    for (int i = 0; i < THREADS; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, work, NULL));
    for (int i = 0; i < CHILDREN; i++) {
        usleep(300 * (useconds_t)i % 1700);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            REQUIRE(hipMalloc(&memory, 4096) == NOT_INITIALIZED && hipStreamCreate(&memory) == NOT_INITIALIZED);
            REQUIRE(hipMallocAsync(&memory, 4096, NULL) == NOT_INITIALIZED && hipFree(&status) == NOT_INITIALIZED);
            REQUIRE(hipStreamSynchronize(PER_THREAD) == NOT_INITIALIZED && hipDeviceSynchronize() == NOT_INITIALIZED);
            exit(7);
        }
        REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    over = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* A child that was made before opens the pool that its parent makes: descriptors of memfd go by /proc. */
static void pool_for_a_child(void)
{
    enum { FILE_DESCRIPTOR = 1, PINNED = 1, ON_DEVICE = 1, BYTES = 1 << 20 };
    struct { int type, handles, location, device; void *security; size_t most; char reserved[56]; } properties = {
        PINNED, FILE_DESCRIPTOR, ON_DEVICE, 0, NULL, 0, ""};
    struct { char data[64]; int file; } given;
    int ends[2], status, word;
    char name[64];
    void *pool, *memory;
    REQUIRE(pipe(ends) == 0);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        close(ends[1]);
        REQUIRE(read(ends[0], &given, sizeof given) == sizeof given);
        snprintf(name, sizeof name, "/proc/%d/fd/%d", parent, given.file);
        int file = open(name, O_RDONLY);
        REQUIRE(!hipMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)file, FILE_DESCRIPTOR, 0));
        REQUIRE(!hipMemPoolImportPointer(&memory, pool, given.data) && !hipMemsetAsync(memory, 2, BYTES, NULL));
        REQUIRE(!hipStreamSynchronize(NULL));
        exit(7); /* with all of it open */
    }
    close(ends[0]);
    REQUIRE(!hipMemPoolCreate(&pool, &properties) && !hipMallocFromPoolAsync(&memory, BYTES, pool, NULL));
    REQUIRE(!hipMemPoolExportToShareableHandle(&given.file, pool, FILE_DESCRIPTOR, 0));
    REQUIRE(!hipMemPoolExportPointer(given.data, memory));
    REQUIRE(write(ends[1], &given, sizeof given) == sizeof given);
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    REQUIRE(!hipMemcpy(&word, memory, 4, TO_HOST) && word == 0x02020202);
    REQUIRE(!hipFreeAsync(memory, NULL) && !hipMemPoolDestroy(pool));
}

int main(int count, char **words)
{
    const char *what = count == 2 ? words[1] : "";
    if (strcmp(what, "limits") == 0)
        limits();
    else if (strcmp(what, "busy") == 0)
        forked_at_any_time();
    else if (strcmp(what, "pool") == 0)
        pool_for_a_child();
    else
        forked(strcmp(what, "used") == 0);
    puts("PASSED");
    return 0;
}
