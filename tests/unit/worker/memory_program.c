/* What a device's memory holds, gives and takes back, and what a child of fork has of it: argv[1] says which. */
#include <errno.h>
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

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "limits") == 0)
        limits();
    else
        forked(count == 2 && strcmp(words[1], "used") == 0);
    puts("PASSED");
    return 0;
}
