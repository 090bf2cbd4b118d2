// Memory, events and pools of one process in another: the program starts itself again, and they talk through a pipe.
#define CONFORMANCE_OWN_MAIN
#include "resources.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

constexpr size_t N = 1000;
__global__ void add_one(unsigned *data)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        data[i]++;
}

// What the other process is to do with what it is sent; it answers with an error, 0 for none.
enum Task : int { ADD, ADD_WITHOUT_CLOSING, OPEN_TWICE, WAIT_FOR_EVENT, RECORD_EVENT, READ_POOL };
struct Message {
    Task task;
    hipIpcMemHandle_t memory;
    hipIpcEventHandle_t event;
    hipMemPoolPtrExportData pointer;
};
constexpr int CHANNEL = 7;

struct Wrong {
    int line;
    hipError_t error;
};
#define STEP(call)                                                                                               \
    if (hipError_t step_error = (call))                                                                          \
    return Wrong{__LINE__, step_error}

static int received_file()
{
    char byte, room[CMSG_SPACE(sizeof(int))];
    iovec part = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    int file = -1;
    if (recvmsg(CHANNEL, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return file;
}
static void send_file(int channel, int file)
{
    char byte = 1, room[CMSG_SPACE(sizeof(int))] = {};
    iovec part = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
    REQUIRE(sendmsg(channel, &message, 0) == 1);
}
static Wrong work(const Message &m)
{
    unsigned *at = nullptr, *again = nullptr;
    void **place = reinterpret_cast<void **>(&at);
    hipEvent_t event;
    if (m.task == ADD || m.task == ADD_WITHOUT_CLOSING || m.task == OPEN_TWICE) {
        STEP(hipIpcOpenMemHandle(place, m.memory, hipIpcMemLazyEnablePeerAccess));
        add_one<<<4, 256>>>(at);
        STEP(hipDeviceSynchronize());
        if (m.task == OPEN_TWICE) {
            STEP(hipIpcOpenMemHandle(reinterpret_cast<void **>(&again), m.memory, hipIpcMemLazyEnablePeerAccess));
            STEP(again == at ? hipSuccess : hipErrorUnknown);
            STEP(hipIpcCloseMemHandle(again));
            add_one<<<4, 256>>>(at); // it is open once more than it was closed
            STEP(hipDeviceSynchronize());
        }
        if (m.task != ADD_WITHOUT_CLOSING)
            STEP(hipIpcCloseMemHandle(at));
    } else if (m.task == WAIT_FOR_EVENT) {
        STEP(hipIpcOpenEventHandle(&event, m.event));
        STEP(hipStreamWaitEvent(nullptr, event, 0));
        STEP(hipStreamSynchronize(nullptr));
        STEP(hipEventQuery(event));
        STEP(hipEventDestroy(event));
    } else if (m.task == RECORD_EVENT) {
        STEP(hipIpcOpenEventHandle(&event, m.event));
        STEP(hipEventRecord(event, nullptr));
        STEP(hipEventSynchronize(event));
        STEP(hipEventDestroy(event));
    } else {
        int file = received_file();
        hipMemPool_t pool;
        STEP(file < 0 ? hipErrorUnknown : hipSuccess);
        STEP(hipMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void *>(intptr_t(file)), hipMemHandleTypePosixFileDescriptor, 0));
        hipMemPoolPtrExportData data = m.pointer;
        STEP(hipMemPoolImportPointer(place, pool, &data));
        add_one<<<4, 256>>>(at);
        STEP(hipDeviceSynchronize());
        STEP(hipFreeAsync(at, nullptr));
        STEP(hipStreamSynchronize(nullptr));
    }
    return {0, hipSuccess};
}
static int other_process()
{
    Message message;
    if (read(CHANNEL, &message, sizeof message) != sizeof message)
        return 1;
    Wrong wrong = work(message);
    return write(CHANNEL, &wrong, sizeof wrong) == sizeof wrong ? 0 : 1;
}
int main(int count, char **names)
{
    if (count == 2 && !std::strcmp(names[1], "--other"))
        return other_process();
    return conformance::main_of(count, names);
}

// Starts the other process before HIP knows of it: exec makes it a program of its own.
class Other {
public:
    Other()
    {
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        process = fork();
        if (process == 0) {
            dup2(ends[1], CHANNEL);
            close(ends[0]); // so that it sees when this process has ended
            close(ends[1]);
            execl("/proc/self/exe", "ipc", "--other", nullptr);
            _exit(127);
        }
        close(ends[1]);
        channel = ends[0];
    }
    ~Other()
    {
        close(channel);
        waitpid(process, nullptr, 0);
    }
    Other(const Other &) = delete;
    void tell(const Message &message, int file = -1) const
    {
        REQUIRE(write(channel, &message, sizeof message) == ssize_t(sizeof message));
        if (file >= 0)
            send_file(channel, file);
    }
    void done() const
    {
        Wrong wrong = {0, hipErrorUnknown};
        if (read(channel, &wrong, sizeof wrong) != ssize_t(sizeof wrong))
            conformance::fail(__FILE__, __LINE__, "the other process ended");
        if (wrong.error)
            conformance::fail(__FILE__, wrong.line, "in the other process: " + conformance::named(wrong.error));
    }

private:
    pid_t process;
    int channel;
};
static Message about_memory(Task task, void *memory)
{
    Message m = {};
    m.task = task;
    CHECK(hipIpcGetMemHandle(&m.memory, memory));
    return m;
}

CASE(memory_is_shared)
{
    Other other;
    Device<unsigned> d(N, 5u);
    other.tell(about_memory(ADD, d.at));
    other.done();
    REQUIRE(d.all_are(6));
}
CASE(memory_is_the_owners_when_the_other_ends)
{
    Device<unsigned> d(N, 5u);
    {
        Other other;
        other.tell(about_memory(ADD_WITHOUT_CLOSING, d.at));
        other.done();
    }
    add_one<<<4, 256>>>(d);
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(7));
}
CASE(memory_is_opened_twice)
{
    Other other;
    Device<unsigned> d(N, 5u);
    other.tell(about_memory(OPEN_TWICE, d.at));
    other.done();
    REQUIRE(d.all_are(7));
}
CASE(two_processes_one_memory)
{
    Other first, second;
    Device<unsigned> d(N, 5u);
    first.tell(about_memory(ADD, d.at));
    first.done();
    second.tell(about_memory(ADD, d.at));
    second.done();
    REQUIRE(d.all_are(7));
}
CASE(memory_handles_refuse)
{
    Device<unsigned> d(N, 5u);
    hipIpcMemHandle_t handle = {}, none = {};
    void *at;
    int host;
    CHECK(hipIpcGetMemHandle(&handle, d.at));
    GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(nullptr, d.at));
    GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, nullptr));
    GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, &host));
    CHECK(hipIpcGetMemHandle(&handle, d.at));
    GIVES(hipErrorInvalidValue, hipIpcOpenMemHandle(nullptr, handle, hipIpcMemLazyEnablePeerAccess));
    GIVES(hipErrorInvalidValue, hipIpcOpenMemHandle(&at, handle, 2));
    GIVES(hipErrorInvalidValue, hipIpcOpenMemHandle(&at, none, hipIpcMemLazyEnablePeerAccess));
    GIVES(hipErrorInvalidContext, hipIpcOpenMemHandle(&at, handle, hipIpcMemLazyEnablePeerAccess)); // by its own process
    GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(nullptr));
    GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(d.at));
    GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(&host));
}
CASE(event_is_waited_for_elsewhere)
{
    Other other;
    Stream s;
    Event e(hipEventInterprocess | hipEventDisableTiming);
    Message m = {};
    m.task = WAIT_FOR_EVENT;
    CHECK(hipIpcGetEventHandle(&m.event, e));
    CHECK(hipLaunchHostFunc(s, [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, nullptr));
    CHECK(hipEventRecord(e, s));
    other.tell(m);
    other.done();
    CHECK(hipEventQuery(e));
}
CASE(event_is_recorded_elsewhere)
{
    Other other;
    Event e(hipEventInterprocess | hipEventDisableTiming);
    Message m = {};
    m.task = RECORD_EVENT;
    CHECK(hipIpcGetEventHandle(&m.event, e));
    other.tell(m);
    other.done();
    CHECK(hipEventSynchronize(e));
    CHECK(hipEventQuery(e));
}
CASE(event_handles_refuse)
{
    Event e(hipEventInterprocess | hipEventDisableTiming), plain;
    hipIpcEventHandle_t handle, none = {};
    hipEvent_t opened;
    CHECK(hipIpcGetEventHandle(&handle, e));
    GIVES(hipErrorInvalidValue, hipIpcGetEventHandle(nullptr, e));
    GIVES(hipErrorInvalidValue, hipIpcGetEventHandle(&handle, nullptr));
    REQUIRE(hipIpcGetEventHandle(&handle, plain) != hipSuccess);
    GIVES(hipErrorInvalidValue, hipIpcOpenEventHandle(nullptr, handle));
    REQUIRE(hipIpcOpenEventHandle(&opened, none) != hipSuccess);
    GIVES(hipErrorInvalidContext, hipIpcOpenEventHandle(&opened, handle)); // by its own process
}
CASE(pool_is_shared)
{
    Other other;
    hipMemPoolProps props = {};
    props.allocType = hipMemAllocationTypePinned;
    props.handleTypes = hipMemHandleTypePosixFileDescriptor;
    props.location.type = hipMemLocationTypeDevice;
    hipMemPool_t pool;
    CHECK(hipMemPoolCreate(&pool, &props));
    unsigned *at;
    int file = -1;
    std::vector<unsigned> host(N, 5);
    Message m = {};
    m.task = READ_POOL;
    CHECK(hipMallocFromPoolAsync(reinterpret_cast<void **>(&at), N * 4, pool, nullptr));
    CHECK(hipMemcpy(at, host.data(), N * 4, hipMemcpyHostToDevice));
    CHECK(hipMemPoolExportToShareableHandle(&file, pool, hipMemHandleTypePosixFileDescriptor, 0));
    CHECK(hipMemPoolExportPointer(&m.pointer, at));
    other.tell(m, file);
    close(file);
    other.done();
    CHECK(hipMemcpy(host.data(), at, N * 4, hipMemcpyDeviceToHost));
    REQUIRE(host == std::vector<unsigned>(N, 6));
    CHECK(hipFreeAsync(at, nullptr));
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemPoolDestroy(pool));
}
