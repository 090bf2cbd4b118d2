/* The worker that compiles: started when it is first needed, again in a child of fork, and when it has died. */
#include "hiprtc.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "protocol.h"

#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)

/* Where hipDeviceProp_t has gcnArchName (hip/hip_runtime_api.h): HIP 6 made it anew. */
#if ABI_MAJOR >= 6
static const char properties_function[] = "hipGetDevicePropertiesR0600";
enum { ARCH_NAME_OFFSET = 1160 };
#else
static const char properties_function[] = "hipGetDeviceProperties";
enum { ARCH_NAME_OFFSET = 396 };
#endif

static struct wire wire = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
static pid_t owner;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* for wire and owner: fork() waits for it, so be short */
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;  /* held for a whole compilation, and taken before the other */

static void before_fork(void) { pthread_mutex_lock(&starting); }
static void after_fork(void) { pthread_mutex_unlock(&starting); }
static void in_child(void)
{
    pthread_mutex_init(&calling, NULL); /* the thread that had it is not in the child */
    pthread_mutex_unlock(&starting);
}
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

static bool worker_ready(void)
{
    pthread_mutex_lock(&starting);
    bool ready = owner == getpid() && !wire_gone(&wire);
    if (!ready) {
        wire_close(&wire);
        owner = getpid();
        ready = wire_start(&wire, "compiler", -1);
    }
    pthread_mutex_unlock(&starting);
    return ready;
}

static void worker_lost(void)
{
    pthread_mutex_lock(&starting);
    wire_close(&wire);
    pthread_mutex_unlock(&starting);
}

/* One compilation at a time, as in ROCm's library, which has one lock for all. */
bool compiler_call(uint32_t code, const struct text *question, struct reply *reply)
{
    pthread_mutex_lock(&calling);
    bool ready = !question->bad && worker_ready();
    struct part part = {question->at, question->bytes};
    bool answered = ready && wire_call(&wire, code, &part, 1, reply);
    if (ready && !answered)
        worker_lost();
    pthread_mutex_unlock(&calling);
    return answered;
}

void current_target(char target[TARGET_BYTES])
{
    char properties[PROPERTIES_BYTES] = {0};
    int device;
    target[0] = 0;
    void *runtime = dlopen("libamdhip64.so." EXPANDED(ABI_MAJOR), RTLD_LAZY); /* stays: the program's own, mostly */
    if (!runtime)
        return;
    int (*which)(int *) = (int (*)(int *))dlsym(runtime, "hipGetDevice");
    int (*ask)(void *, int) = (int (*)(void *, int))dlsym(runtime, properties_function);
    if (which && ask && which(&device) == 0 && ask(properties, device) == 0)
        memccpy(target, properties + ARCH_NAME_OFFSET, 0, TARGET_BYTES - 1);
    target[TARGET_BYTES - 1] = 0;
}
