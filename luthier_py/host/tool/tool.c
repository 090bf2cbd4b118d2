/* A tool under a program: its worker, what it selects, how it begins and ends.
 *
 * On any failure here the original runs and one line says so; LUTHIER_STRICT=1 makes it the program's end. A tool
 * begins with the library (LUTHIER_TOOL) or by the program's call, and ends with the program or before.
 */
#include "tool.h"

#include "guest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

struct settings settings;
atomic_uint tool_number = 1;

/* Set by LUTHIER_SIGNAL: toggled, or what `luthier attach` and `luthier detach` send with it. One for the libraries of
 * all levels: the first has the signal's handler. */
enum { UNTOLD, TOGGLED, ATTACHED, DETACHED };
__attribute__((visibility("default"))) atomic_int luthier_tool_told;
#define told luthier_tool_told

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wire wire = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
/* STARTED: the worker may still be importing; READY: it has sent its settings; BROKEN: originals run from here on. */
static _Atomic enum { COLD, STARTED, READY, BROKEN } state;
static bool used;                       /* something was selected: a child of fork cannot use it further */
static atomic_int profiled = -1;        /* by hipProfilerStart and Stop; before these, as the settings say */
static atomic_bool named;               /* there is a tool: the environment's, or one that was attached */
static uint64_t (*device_launches)(void); /* NULL: the runtime does not say */
static bool (*within)(void);              /* NULL: the level has no ranges */
static void (*collect)(void);             /* NULL: nothing was launched yet */
static void (*leave)(void);               /* NULL: nothing reads the program's memory */
static uint64_t launched_before;          /* the tool began */
static char *attached_tool, *attached_options;

static _Atomic(struct launch_counts *) counts; /* in a file that the worker sees, too, however the program ends */
static int counts_file = -1;                   /* until the worker has it */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static struct launch_counts *make_counts(void)
{
    static struct launch_counts alone; /* where there is no such file, and so no worker */
    int file = memfd_create(COUNTS_NAME, MFD_CLOEXEC);
    void *place = file >= 0 && ftruncate(file, COUNTS_BYTES) == 0
                      ? mmap(NULL, COUNTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (place == MAP_FAILED) {
        close(file);
        return &alone;
    }
    madvise(place, COUNTS_BYTES, MADV_DONTFORK);
    counts_file = descriptor_out_of_the_way(file);
    return place;
}

struct launch_counts *launch_counts(void)
{
    struct launch_counts *found = counts;
    if (found)
        return found;
    pthread_mutex_lock(&counting);
    if (!counts)
        counts = make_counts();
    pthread_mutex_unlock(&counting);
    return counts;
}

/* For the next worker. Threads may still count in those that it had. */
static void drop_counts(void)
{
    counts = NULL;
    if (counts_file >= 0)
        close(counts_file);
    counts_file = -1;
}

bool tool_strict(void)
{
    const char *text = setting("LUTHIER_STRICT");
    return text && *text && strcmp(text, "0") != 0;
}

static void stop_if_strict(void)
{
    if (!tool_strict())
        return;
    say("luthier: stopped, since LUTHIER_STRICT is set");
    fflush(NULL);
    _exit(1);
}

static void give_up(void)
{
    state = BROKEN;
    stop_if_strict();
}

void tool_refused(void) { stop_if_strict(); }

void tool_active(bool now)
{
    told = UNTOLD;
    profiled = now;
}

static void hear(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if (info->si_code == SI_QUEUE)
        told = info->si_value.sival_int ? ATTACHED : DETACHED;
    else
        told ^= 1;
}

/* A name, as kill takes it, or a number. The program's own handler, before or after, takes precedence. */
static void listen_for_signal(const char *text)
{
    static const struct { const char *name; int number; } names[] = {
        {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"URG", SIGURG}, {"WINCH", SIGWINCH}, {"CONT", SIGCONT}};
    int number = atoi(text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(text + (strncasecmp(text, "SIG", 3) ? 0 : 3), names[i].name) == 0)
            number = names[i].number;
    struct sigaction before, ours = {.sa_sigaction = hear, .sa_flags = SA_RESTART | SA_SIGINFO};
    if (sigaction(number, NULL, &before) < 0)
        say("luthier: LUTHIER_SIGNAL=%s is no signal; give USR1 or USR2, for example", text);
    else if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL)
        sigaction(number, &ours, NULL);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

/* Nor can a child use a GPU that its parent has used. A child forked before gets a separate worker. */
static void in_child(void)
{
    wire_close(&wire);
    if (state == READY || state == STARTED)
        state = used ? BROKEN : COLD;
    drop_counts();
    launched_before = 0;
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&counting, NULL);
}

static void read_environment(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
#ifdef LUTHIER_TOOL
    setenv("LUTHIER_TOOL", LUTHIER_TOOL, 0);
    setenv("LUTHIER_TOOL_OPTIONS", LUTHIER_TOOL_OPTIONS, 0);
    environment_keep();
#endif
    const char *tool = setting("LUTHIER_TOOL"), *signal_name = setting("LUTHIER_SIGNAL");
    named = tool && *tool;
    if (signal_name && *signal_name)
        listen_for_signal(signal_name);
}

/* Also called by another library's constructor before ours has run. */
__attribute__((constructor)) static void read_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}

static void gone(void)
{
    if (state == BROKEN)
        return;
    if (wire_taken(&wire))
        say("luthier: the program has closed file descriptor %d, the way to the tool's worker; kernels run as they are", wire.fd);
    else
        say("luthier: the tool's worker has ended; kernels run as they are");
    give_up();
}

bool tool_ask(uint32_t code, const struct part *parts, int count, struct reply *reply)
{
    bool answered = wire_call(&wire, code, parts, count, reply);
    if (!answered)
        gone();
    return answered;
}

void tool_tell(uint32_t code, const struct part *parts, int count)
{
    if (!wire_send(&wire, code, parts, count) || (tool_strict() && wire_gone(&wire)))
        gone();
}

bool tool_lives(void)
{
    if (state == READY && wire_gone(&wire))
        gone();
    return state == READY;
}

void tool_forget(uint32_t image)
{
    if (state == READY)
        tool_tell(MESSAGE_FORGET, &(struct part){&image, sizeof image}, 1);
}

void count_launches_by(uint64_t (*launches)(void)) { device_launches = launches; }
void select_by(bool (*level)(void)) { within = level; }
void collect_by(void (*level)(void)) { collect = level; }
void leave_by(void (*action)(void)) { leave = action; }

/* Of the device's own count. Launches that failed were seen, and are not in it. */
static void count_unseen(void)
{
    struct launch_counts *found = launch_counts();
    uint64_t seen = found->seen, all = device_launches ? device_launches() - launched_before : 0;
    found->unseen = all > seen ? all - seen : 0;
}

/* The program ends, or the tool is detached. */
void tool_end(void)
{
    struct reply reply = {0, 0, NULL};
    if (state == READY && collect)
        collect();
    if (tool_runs()) {
        count_unseen();
        if (!wire_call(&wire, MESSAGE_FINISH, NULL, 0, &reply)) {
            say("luthier: the tool's worker has ended before its verdict");
            reply.status = -1;
        }
    }
    free(reply.data);
    state = BROKEN;
    pthread_mutex_lock(&wire.lock);
    wire_close(&wire);
    pthread_mutex_unlock(&wire.lock);
    if (reply.status)
        stop_if_strict();
}

static void finish(void)
{
    if (state == COLD && !named && launch_counts()->seen)
        say("luthier: no tool: set LUTHIER_TOOL, or attach one");
    tool_end();
    if (leave)
        leave();
}

static void start(void)
{
    static bool registered;
    if (!registered) {
        atexit(finish);
        at_quick_exit(finish);
    }
    registered = true;
    if (!named)
        return;
    launch_counts();
    bool started = counts_file >= 0 && wire_start(&wire, "tool", counts_file);
    if (counts_file < 0)
        say("luthier: no tool: there is no memory for how many launches there are");
    else
        close(counts_file);
    counts_file = -1;
    if (started)
        state = STARTED;
    else
        give_up();
}

void tool_prepare(void)
{
    read_settings();
    pthread_mutex_lock(&lock);
    if (state == COLD)
        start();
    pthread_mutex_unlock(&lock);
}

/* Name and options of the tool, where the environment does not say them -> its settings. */
static void learn(void)
{
    const char *tool = attached_tool ? attached_tool : "", *options = attached_options ? attached_options : "";
    uint32_t head = (uint32_t)strlen(tool);
    struct part parts[] = {{&head, sizeof head}, {tool, head}, {options, strlen(options)}};
    struct reply reply;
    if (!tool_ask(MESSAGE_SETTINGS, parts, 3, &reply))
        return;
    bool good = reply.status == 0 && reply.bytes == sizeof settings;
    if (good)
        memcpy(&settings, reply.data, sizeof settings);
    free(reply.data);
    if (good)
        state = READY;
    else
        give_up(); /* the worker has said why */
}

bool tool_on(void)
{
    if (state == READY)
        return true;
    if (state == BROKEN || !named)
        return false;
    pthread_mutex_lock(&lock);
    used = true;
    if (state == COLD)
        start();
    if (state == STARTED) {
        atexit(finish); /* again: what the runtime has registered in the meantime ends after us */
        learn();
    }
    pthread_mutex_unlock(&lock);
    return state == READY;
}

bool tool_named(void)
{
    read_settings();
    return named && state != BROKEN;
}

/* Off, and may come back. */
static bool is_detached(void)
{
    if (!tool_named())
        return false;
    int active = profiled >= 0 ? profiled : state == READY ? (int)settings.active : true;
    return told == DETACHED || (told != ATTACHED && active == (told == TOGGLED));
}

static bool is_off(void) { return !tool_named() || is_detached(); }

bool tool_selects(unsigned long launches, unsigned long *index)
{
    *index = atomic_fetch_add(&launch_counts()->seen, launches);
    if (is_off() || !tool_on() || is_off()) { /* now its settings are known */
        launch_counts()->detached += is_detached() ? launches : 0;
        return false;
    }
    uint64_t from = *index > settings.first ? *index : settings.first;
    uint64_t to = *index + launches < settings.end ? *index + launches : settings.end;
    return from < to && (!settings.by_range || (within && within()));
}

void tool_passes(atomic_flag *said, const char *why)
{
    launch_counts()->selected++;
    if (!atomic_flag_test_and_set(said))
        say("luthier: %s", why);
}

bool tool_chooses(const char *range)
{
    struct reply reply;
    if (!tool_ask(MESSAGE_RANGE, &(struct part){range, strlen(range)}, 1, &reply))
        return false;
    bool chosen = reply.status == 0 && reply.bytes == 1 && reply.data[0];
    free(reply.data);
    return chosen;
}

bool tool_runs(void) { return state == READY || state == STARTED; }

bool tool_exchange(const char *tool, const char *options)
{
    if (tool_runs())
        return false;
    pthread_mutex_lock(&lock);
    wire_close(&wire);
    free(attached_tool);
    free(attached_options);
    attached_tool = strdup(tool);
    attached_options = strdup(options);
    drop_counts();
    launched_before = device_launches ? device_launches() : 0;
    told = UNTOLD;
    profiled = -1;
    tool_number++;
    named = true;
    state = COLD;
    pthread_mutex_unlock(&lock);
    return true;
}

char *tool_verdict(void)
{
    struct reply reply = {0, 0, NULL};
    if (state != READY)
        return NULL;
    if (collect)
        collect();
    count_unseen();
    return tool_ask(MESSAGE_VERDICT, NULL, 0, &reply) ? reply.data : NULL;
}
