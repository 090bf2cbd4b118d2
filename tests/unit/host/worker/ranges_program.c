/* Launches saxpy of no elements inside and outside of roctx ranges. Its code object is the first argument, what it does the
 * second. Each launch has a grid of its own, a power of two, so that a sum of counts says which launches are in it. With
 * OPENED, roctx comes by dlopen of what OPENED names, with GLOBAL by that of the program itself, and HIP's launches too. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int hipModuleLoad(void **module, const char *path);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int hipDeviceSynchronize(void);
int hipStreamCreate(void **stream);
int hipStreamBeginCapture(void *stream, int mode);
int hipStreamEndCapture(void *stream, void **graph);
int hipGraphInstantiate(void **executable, void *graph, void **node, char *log, size_t bytes);
int hipGraphLaunch(void *executable, void *stream);
int hipEventCreate(void **event);
int hipEventRecord(void *event, void *stream);
int hipStreamWaitEvent(void *stream, void *event, unsigned flags);
int hipMalloc(void **address, size_t bytes);
int hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int hipMemsetAsync(void *to, int value, size_t bytes, void *stream);

#define REQUIRE(condition) ((condition) ? (void)0 : (fprintf(stderr, "%d: not so: %s\n", __LINE__, #condition), exit(1)))

#ifdef GLOBAL
#define OPENED NULL
#define hipModuleLaunchKernel ((__typeof__(&hipModuleLaunchKernel))symbol("hipModuleLaunchKernel"))
#endif

#ifdef OPENED
static void *symbol(const char *name)
{
    void *library = dlopen(OPENED, RTLD_NOW), *found = library ? dlsym(library, name) : NULL;
    REQUIRE(found);
    return found;
}
#define roctxRangePushA ((int (*)(const char *))symbol("roctxRangePushA"))
#define roctxRangePop ((int (*)(void))symbol("roctxRangePop"))
#define roctxRangeStartA ((uint64_t (*)(const char *))symbol("roctxRangeStartA"))
#define roctxRangeStop ((void (*)(uint64_t))symbol("roctxRangeStop"))
#define roctxMarkA ((void (*)(const char *))symbol("roctxMarkA"))
#define roctxProfilerPause ((int (*)(uint64_t))symbol("roctxProfilerPause"))
#define roctxProfilerResume ((int (*)(uint64_t))symbol("roctxProfilerResume"))
#define roctxGetThreadId ((int (*)(uint64_t *))symbol("roctxGetThreadId"))
#define roctxNameOsThread ((int (*)(const char *))symbol("roctxNameOsThread"))
#define roctxNameHipDevice ((int (*)(const char *, int))symbol("roctxNameHipDevice"))
#define roctxNameHipStream ((int (*)(const char *, const void *))symbol("roctxNameHipStream"))
#else
int roctxRangePushA(const char *);
int roctxRangePop(void);
uint64_t roctxRangeStartA(const char *);
void roctxRangeStop(uint64_t);
void roctxMarkA(const char *);
int roctxProfilerPause(uint64_t);
int roctxProfilerResume(uint64_t);
int roctxGetThreadId(uint64_t *);
int roctxNameOsThread(const char *);
int roctxNameHipDevice(const char *, int);
int roctxNameHipStream(const char *, const void *);
#endif

static const char *code;

static void launch_on(void *stream, unsigned grid)
{
    static void *function;
    void *module, *x = NULL;
    unsigned n = 0;
    float a = 1;
    void *arguments[] = {&n, &a, &x, &x};
    if (!function)
        REQUIRE(!hipModuleLoad(&module, code) && !hipModuleGetFunction(&function, module, "saxpy"));
    REQUIRE(!hipModuleLaunchKernel(function, grid, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

static void launch(unsigned grid)
{
    launch_on(NULL, grid);
    REQUIRE(!hipDeviceSynchronize());
}

static pthread_barrier_t meeting;

static void *second(void *unused)
{
    roctxNameOsThread("second");
    launch(16);
    REQUIRE(roctxRangePushA("forward") == 0);
    pthread_barrier_wait(&meeting); /* the first launches now */
    pthread_barrier_wait(&meeting);
    launch(64);
    return unused; /* with a range that nobody ends */
}

static void threads(void)
{
    pthread_t other;
    pthread_barrier_init(&meeting, NULL, 2);
    launch(1);
    REQUIRE(roctxRangePushA("step") == 0);
    launch(2);
    REQUIRE(roctxRangePushA("forward pass") == 1);
    launch(4);
    REQUIRE(roctxRangePop() == 1);
    launch(8);
    uint64_t epoch = roctxRangeStartA("epoch");
    REQUIRE(!pthread_create(&other, NULL, second, NULL));
    pthread_barrier_wait(&meeting);
    launch(32);
    roctxMarkA("half of it");
    pthread_barrier_wait(&meeting);
    pthread_join(other, NULL);
    roctxRangeStop(epoch);
    launch(128);
    REQUIRE(roctxRangePop() == 0);
    launch(256);
}

static void mistakes(void)
{
    static char name[20001];
    memset(name, 'x', sizeof name - 1);
    REQUIRE(roctxRangePop() < 0);
    roctxRangeStop(12345);
    roctxMarkA(NULL);
    launch(1);
    REQUIRE(roctxRangePushA(NULL) == 0);
    launch(2);
    REQUIRE(roctxRangePushA("odd \xff\"\n{\x01") == 1);
    launch(4);
    REQUIRE(roctxRangePushA(name) == 2);
    launch(8);
    roctxRangeStartA("");
    for (int level = 2; level >= 0; level--)
        REQUIRE(roctxRangePop() == level);
    REQUIRE(roctxRangePop() < 0 && roctxRangePop() < 0);
    launch(16);
    REQUIRE(roctxGetThreadId(NULL) != 0);
}

static void pauses(void)
{
    uint64_t thread;
    REQUIRE(!roctxGetThreadId(&thread) && thread == (uint64_t)getpid());
    launch(1);
    REQUIRE(!roctxProfilerPause(0));
    launch(2);
    REQUIRE(!roctxProfilerResume(0));
    launch(4);
}

static void forks(void)
{
    int status;
    roctxRangePushA("family");
    roctxRangeStartA("all");
    pid_t child = fork();
    if (!child) {
        launch(1);
        REQUIRE(roctxRangePop() == 0);
        launch(2);
        exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    launch(4);
}

static void graphs(void)
{
    void *stream, *graph, *executable;
    launch(1);
    REQUIRE(!hipStreamCreate(&stream));
    roctxRangePushA("captured");
    REQUIRE(!hipStreamBeginCapture(stream, 0));
    launch_on(stream, 2);
    REQUIRE(!hipStreamEndCapture(stream, &graph) && !hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    roctxRangePop();
    roctxRangePushA("launched");
    REQUIRE(!hipGraphLaunch(executable, stream) && !hipDeviceSynchronize());
    roctxRangePop();
    REQUIRE(!hipGraphLaunch(executable, stream) && !hipDeviceSynchronize());
}

/* One copies, launches and fills, the other goes on behind its event. */
static void streams(void)
{
    enum { BYTES = 4096, TO_DEVICE = 1, TO_HOST = 2 };
    void *first, *then, *event, *memory;
    char *host = calloc(1, BYTES);
    REQUIRE(!hipStreamCreate(&first) && !hipStreamCreate(&then) && !hipEventCreate(&event) && !hipMalloc(&memory, BYTES));
    roctxNameHipStream("first", first);
    roctxNameHipDevice("card", 0);
    roctxRangePushA("all");
    REQUIRE(!hipMemcpyAsync(memory, host, BYTES, TO_DEVICE, first));
    launch_on(first, 1);
    REQUIRE(!hipMemsetAsync(memory, 7, BYTES / 2, first) && !hipEventRecord(event, first));
    REQUIRE(!hipStreamWaitEvent(then, event, 0));
    launch_on(then, 2);
    REQUIRE(roctxRangePop() == 0);
    REQUIRE(!hipMemcpyAsync(host, memory, BYTES, TO_HOST, then) && !hipDeviceSynchronize());
    REQUIRE(host[0] == 7 && host[BYTES - 1] == 0);
}

int main(int count, char **words)
{
    REQUIRE(count == 3);
    code = words[1];
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"threads", threads}, {"mistakes", mistakes}, {"pauses", pauses}, {"forks", forks}, {"streams", streams}, {"graphs", graphs}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(words[2], all[i].name) == 0)
            return all[i].run(), 0;
    return 2;
}
