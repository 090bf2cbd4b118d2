/* Launches saxpy of no elements inside and outside of roctx ranges. Its code object is the first argument, what it does the
 * second. Each launch has a grid of its own, a power of two, so that a sum of counts says which launches are in it. With
 * OPENED, roctx comes by dlopen of what OPENED names. */
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

#define REQUIRE(condition) ((condition) ? (void)0 : (fprintf(stderr, "%d: not so: %s\n", __LINE__, #condition), exit(1)))

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
#endif

static const char *code;

static void launch(unsigned grid)
{
    static void *function;
    void *module, *x = NULL;
    unsigned n = 0;
    float a = 1;
    void *arguments[] = {&n, &a, &x, &x};
    if (!function)
        REQUIRE(!hipModuleLoad(&module, code) && !hipModuleGetFunction(&function, module, "saxpy"));
    REQUIRE(!hipModuleLaunchKernel(function, grid, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL) && !hipDeviceSynchronize());
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

int main(int count, char **words)
{
    REQUIRE(count == 3);
    code = words[1];
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"threads", threads}, {"mistakes", mistakes}, {"pauses", pauses}, {"forks", forks}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(words[2], all[i].name) == 0)
            return all[i].run(), 0;
    return 2;
}
