// Memory, events and pools that another process opens: this program, started again with the case's name behind "other".
#define CONFORMANCE_OWN_MAIN
#include "resources.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

constexpr unsigned COUNT = 1000;

__global__ void add_one(unsigned *data) { data[threadIdx.x + blockIdx.x * blockDim.x] += 1; }

// The other process, and a socket to it. It gives the line of what failed there, or 0.
class Other {
public:
    explicit Other(const char *what)
    {
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        socket = ends[0];
        process = vfork();
        if (process == 0) {
            dup2(ends[1], 3);
            execl("/proc/self/exe", "ipc", "other", what, nullptr);
            _exit(127);
        }
        close(ends[1]);
        REQUIRE(process > 0);
    }
    ~Other()
    {
        close(socket);
        if (process > 0)
            waitpid(process, nullptr, 0);
    }
    template <typename T> void give(const T &value) { REQUIRE(write(socket, &value, sizeof value) == sizeof value); }
    template <typename T> T get()
    {
        T value = {};
        REQUIRE(recv(socket, &value, sizeof value, MSG_WAITALL) == sizeof value);
        return value;
    }
    void give_file(int file)
    {
        char room[CMSG_SPACE(sizeof file)] = {}, byte = 0;
        iovec part = {&byte, 1};
        msghdr message = {nullptr, 0, &part, 1, room, sizeof room, 0};
        cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof file);
        std::memcpy(CMSG_DATA(head), &file, sizeof file);
        REQUIRE(sendmsg(socket, &message, 0) == 1);
    }
    void end_of_words() { shutdown(socket, SHUT_WR); }
    void ends_well()
    {
        int status = 0;
        REQUIRE(waitpid(process, &status, 0) == process);
        process = 0;
        REQUIRE(WIFEXITED(status));
        EQUAL(0, WEXITSTATUS(status));
    }
    // It has ended, and nobody has asked how: a zombie.
    void ends()
    {
        siginfo_t says;
        REQUIRE(waitid(P_PID, id_t(process), &says, WEXITED | WNOWAIT) == 0);
    }

private:
    int socket;
    pid_t process;
};

// And there.
namespace other {
template <typename T> T get()
{
    T value = {};
    REQUIRE(recv(3, &value, sizeof value, MSG_WAITALL) == sizeof value);
    return value;
}
template <typename T> void give(const T &value) { REQUIRE(write(3, &value, sizeof value) == sizeof value); }
int get_file()
{
    int file = -1;
    char room[CMSG_SPACE(sizeof file)] = {}, byte;
    iovec part = {&byte, 1};
    msghdr message = {nullptr, 0, &part, 1, room, sizeof room, 0};
    REQUIRE(recvmsg(3, &message, 0) == 1 && CMSG_FIRSTHDR(&message));
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return file;
}

void memory()
{
    auto handle = get<hipIpcMemHandle_t>();
    unsigned *at = nullptr, *again = nullptr;
    std::vector<unsigned> seen(COUNT);
    GIVES(hipErrorInvalidValue, hipIpcOpenMemHandle(nullptr, handle, hipIpcMemLazyEnablePeerAccess));
    GIVES(hipErrorInvalidValue, hipIpcOpenMemHandle(reinterpret_cast<void **>(&at), handle, 0));
    CHECK(hipIpcOpenMemHandle(reinterpret_cast<void **>(&at), handle, hipIpcMemLazyEnablePeerAccess));
    CHECK(hipMemcpy(seen.data(), at, COUNT * 4, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < COUNT; i++)
        EQUAL(i, seen[i]);
    add_one<<<COUNT / 100, 100>>>(at);
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemset(at + COUNT - 1, 0, 4));
    hipPointerAttribute_t says;
    CHECK(hipPointerGetAttributes(&says, at));
    REQUIRE(says.devicePointer == at);
    hipDeviceptr_t base;
    size_t bytes;
    CHECK(hipMemGetAddressRange(&base, &bytes, at + 5));
    EQUAL(COUNT * 4, bytes);
    REQUIRE(hipMemcpy(seen.data(), at + 1, COUNT * 4, hipMemcpyDeviceToHost) == hipErrorInvalidValue);
    CHECK(hipIpcOpenMemHandle(reinterpret_cast<void **>(&again), handle, hipIpcMemLazyEnablePeerAccess));
    REQUIRE(again == at);
    CHECK(hipIpcCloseMemHandle(again));
    CHECK(hipMemcpy(seen.data(), at, COUNT * 4, hipMemcpyDeviceToHost)); // still open
    GIVES(hipErrorInvalidValue, hipFree(at));
    CHECK(hipIpcCloseMemHandle(at));
    GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(at));
    GIVES(hipErrorInvalidValue, hipMemset(at, 0, 4));
}
void memory_of_a_program_that_has_ended()
{
    auto handle = get<hipIpcMemHandle_t>();
    unsigned *at = nullptr;
    CHECK(hipIpcOpenMemHandle(reinterpret_cast<void **>(&at), handle, hipIpcMemLazyEnablePeerAccess));
    give(0);
    char end;
    REQUIRE(read(3, &end, 1) == 0); // the one that lent it is gone
    add_one<<<COUNT / 100, 100>>>(at);
    std::vector<unsigned> seen(COUNT);
    CHECK(hipMemcpy(seen.data(), at, COUNT * 4, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < COUNT; i++)
        EQUAL(i + 1, seen[i]);
    CHECK(hipIpcOpenMemHandle(reinterpret_cast<void **>(&at), handle, hipIpcMemLazyEnablePeerAccess)); // as it is open
}
void lender()
{
    std::vector<unsigned> numbers(COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        numbers[i] = i;
    unsigned *at;
    CHECK(hipMalloc(reinterpret_cast<void **>(&at), COUNT * 4));
    CHECK(hipMemcpy(at, numbers.data(), COUNT * 4, hipMemcpyHostToDevice));
    hipIpcMemHandle_t handle;
    CHECK(hipIpcGetMemHandle(&handle, at));
    give(handle);
    get<int>();
    _exit(0);
}
void part_of_memory()
{
    auto handle = get<hipIpcMemHandle_t>();
    unsigned *at = nullptr, first = 0;
    CHECK(hipIpcOpenMemHandle(reinterpret_cast<void **>(&at), handle, hipIpcMemLazyEnablePeerAccess));
    CHECK(hipMemcpy(&first, at, 4, hipMemcpyDeviceToHost));
    EQUAL(7u, first);
    CHECK(hipIpcCloseMemHandle(at));
}
void recorder()
{
    auto handle = get<hipIpcEventHandle_t>();
    hipEvent_t event;
    GIVES(hipErrorInvalidValue, hipIpcOpenEventHandle(nullptr, handle));
    CHECK(hipIpcOpenEventHandle(&event, handle));
    CHECK(hipEventQuery(event));
    Stream s;
    Gate gate;
    gate.hold(s);
    CHECK(hipEventRecord(event, s));
    GIVES(hipErrorNotReady, hipEventQuery(event));
    give(0); // recorded
    get<int>();
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipEventSynchronize(event));
    give(0);
    get<int>();
    CHECK(hipEventDestroy(event));
}
void listener()
{
    auto handle = get<hipIpcEventHandle_t>();
    hipEvent_t event;
    CHECK(hipIpcOpenEventHandle(&event, handle));
    GIVES(hipErrorNotReady, hipEventQuery(event));
    Stream s;
    CHECK(hipStreamWaitEvent(s, event, 0));
    GIVES(hipErrorNotReady, hipStreamQuery(s));
    give(0);
    CHECK(hipStreamSynchronize(s));
    CHECK(hipEventQuery(event));
    CHECK(hipEventDestroy(event));
}
void deserter()
{
    auto handle = get<hipIpcEventHandle_t>();
    hipEvent_t event;
    CHECK(hipIpcOpenEventHandle(&event, handle));
    Stream s;
    Gate gate;
    gate.hold(s);
    CHECK(hipEventRecord(event, s));
    give(0);
    get<int>();
    _exit(0); // it is never done
}
void pool()
{
    int file = get_file();
    auto exported = get<hipMemPoolPtrExportData>();
    hipMemPool_t pool;
    unsigned *at = nullptr;
    CHECK(hipMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void *>(intptr_t(file)),
                                              hipMemHandleTypePosixFileDescriptor, 0));
    close(file);
    GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(0, pool));
    void *none;
    GIVES(hipErrorInvalidValue, hipMallocFromPoolAsync(&none, 64, pool, nullptr));
    CHECK(hipMemPoolImportPointer(reinterpret_cast<void **>(&at), pool, &exported));
    add_one<<<COUNT / 100, 100>>>(at);
    Stream s;
    CHECK(hipDeviceSynchronize());
    CHECK(hipFreeAsync(at, s));
    CHECK(hipStreamSynchronize(s));
    GIVES(hipErrorInvalidValue, hipMemset(at, 0, 4));
    CHECK(hipMemPoolImportPointer(reinterpret_cast<void **>(&at), pool, &exported));
    CHECK(hipFree(at));
    CHECK(hipMemPoolDestroy(pool));
}
void virtual_memory()
{
    int file = get_file();
    size_t bytes = get<size_t>();
    hipMemGenericAllocationHandle_t memory;
    unsigned *at = nullptr;
    CHECK(hipMemImportFromShareableHandle(&memory, reinterpret_cast<void *>(intptr_t(file)), hipMemHandleTypePosixFileDescriptor));
    close(file);
    CHECK(hipMemAddressReserve(reinterpret_cast<void **>(&at), bytes, 0, nullptr, 0));
    CHECK(hipMemMap(at, bytes, 0, memory, 0));
    hipMemAccessDesc access = {};
    access.location.type = hipMemLocationTypeDevice;
    access.flags = hipMemAccessFlagsProtReadWrite;
    CHECK(hipMemSetAccess(at, bytes, &access, 1));
    add_one<<<COUNT / 100, 100>>>(at);
    CHECK(hipMemUnmap(at, bytes));
    CHECK(hipMemAddressFree(at, bytes));
    CHECK(hipMemRelease(memory));
}

const struct { const char *name; void (*run)(); } ALL[] = {
    {"memory", memory}, {"memory_of_a_program_that_has_ended", memory_of_a_program_that_has_ended}, {"lender", lender},
    {"part_of_memory", part_of_memory}, {"recorder", recorder}, {"listener", listener}, {"deserter", deserter}, {"pool", pool},
    {"virtual_memory", virtual_memory},
};
} // namespace other

static std::vector<unsigned> numbers()
{
    std::vector<unsigned> made(COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        made[i] = i;
    return made;
}

CASE(memory_handles_refuse)
{
    Device<unsigned> d(COUNT);
    Pinned<unsigned> p(COUNT);
    hipIpcMemHandle_t handle = {}, empty = {};
    void *at;
    int host;
    GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(nullptr, d));
    GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, nullptr));
    GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, &host));
    GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, p));
    CHECK(hipIpcGetMemHandle(&handle, d));
    GIVES(hipErrorInvalidContext, hipIpcOpenMemHandle(&at, handle, hipIpcMemLazyEnablePeerAccess));
    GIVES(hipErrorInvalidValue, hipIpcOpenMemHandle(&at, empty, hipIpcMemLazyEnablePeerAccess));
    GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(nullptr));
    GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(d));
    GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(&host));
}
CASE(handles_are_told_apart)
{
    Device<unsigned> a(COUNT), b(COUNT);
    hipIpcMemHandle_t first, again, second;
    CHECK(hipIpcGetMemHandle(&first, a));
    CHECK(hipIpcGetMemHandle(&again, a));
    CHECK(hipIpcGetMemHandle(&second, b));
    REQUIRE(!std::memcmp(&first, &again, sizeof first));
    REQUIRE(std::memcmp(&first, &second, sizeof first));
}
CASE(memory_is_shared)
{
    Device<unsigned> before(3), d(COUNT), after(COUNT, 5u);
    CHECK(hipMemcpy(d, numbers().data(), d.bytes(), hipMemcpyHostToDevice));
    hipIpcMemHandle_t handle;
    CHECK(hipIpcGetMemHandle(&handle, d));
    Other process("memory");
    process.give(handle);
    process.ends_well();
    std::vector<unsigned> seen = d.host();
    for (unsigned i = 0; i < COUNT - 1; i++)
        EQUAL(i + 1, seen[i]);
    EQUAL(0u, seen[COUNT - 1]);
    REQUIRE(after.all_are(5)); // that of others on the same pages is not touched, when it is closed either
}
CASE(part_of_memory_is_shared)
{
    Device<unsigned> d(COUNT, 7u);
    hipIpcMemHandle_t handle;
    CHECK(hipIpcGetMemHandle(&handle, d.at + 200));
    Other process("part_of_memory");
    process.give(handle);
    process.ends_well();
}
CASE(shared_memory_outlives_its_program)
{
    Other opener("memory_of_a_program_that_has_ended");
    {
        Other lender("lender");
        opener.give(lender.get<hipIpcMemHandle_t>());
        opener.get<int>();
        lender.give(0);
        lender.ends_well();
    }
    opener.end_of_words();
    opener.ends_well();
}
CASE(memory_of_a_program_that_has_ended_cannot_be_opened)
{
    Other lender("lender");
    auto handle = lender.get<hipIpcMemHandle_t>();
    lender.give(0);
    lender.ends_well();
    void *at;
    GIVES(hipErrorInvalidDevicePointer, hipIpcOpenMemHandle(&at, handle, hipIpcMemLazyEnablePeerAccess));
}
CASE(event_handles_refuse)
{
    Event plain, shared(hipEventInterprocess | hipEventDisableTiming);
    hipIpcEventHandle_t handle = {}, empty = {};
    hipEvent_t event;
    GIVES(hipErrorInvalidValue, hipIpcGetEventHandle(nullptr, shared));
    GIVES(hipErrorInvalidValue, hipIpcGetEventHandle(&handle, nullptr));
    GIVES(hipErrorInvalidConfiguration, hipIpcGetEventHandle(&handle, plain));
    CHECK(hipIpcGetEventHandle(&handle, shared));
    GIVES(hipErrorInvalidContext, hipIpcOpenEventHandle(&event, handle));
    GIVES(hipErrorInvalidValue, hipIpcOpenEventHandle(&event, empty));
    hipIpcMemHandle_t memory; // neither is the other
    Device<char> d(4096);
    void *at;
    CHECK(hipIpcGetMemHandle(&memory, d));
    std::memcpy(&empty, &memory, sizeof memory);
    GIVES(hipErrorInvalidValue, hipIpcOpenEventHandle(&event, empty));
    std::memcpy(&memory, &handle, sizeof memory);
    GIVES(hipErrorInvalidValue, hipIpcOpenMemHandle(&at, memory, hipIpcMemLazyEnablePeerAccess));
}
CASE(shared_event_at_home)
{
    Event e(hipEventInterprocess | hipEventDisableTiming);
    Stream s, other;
    CHECK(hipEventQuery(e));
    for (int round = 0; round < 100; round++)
        CHECK(hipEventRecord(e, s));
    CHECK(hipEventSynchronize(e));
    Gate gate;
    gate.hold(s);
    CHECK(hipEventRecord(e, s));
    GIVES(hipErrorNotReady, hipEventQuery(e));
    CHECK(hipStreamWaitEvent(other, e, 0));
    GIVES(hipErrorNotReady, hipStreamQuery(other));
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipStreamSynchronize(other));
    CHECK(hipEventQuery(e));
    float time;
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&time, e, e));
}
CASE(shared_event_is_what_was_recorded_last)
{
    Event e(hipEventInterprocess | hipEventDisableTiming);
    Stream held(hipStreamNonBlocking), other(hipStreamNonBlocking), waits(hipStreamNonBlocking);
    Gate gate;
    gate.hold(held);
    CHECK(hipEventRecord(e, held));
    CHECK(hipStreamWaitEvent(waits, e, 0));
    for (int round = 0; round < 192; round++)
        CHECK(hipEventRecord(e, other));
    CHECK(hipStreamSynchronize(other));
    CHECK(hipEventQuery(e));
    GIVES(hipErrorNotReady, hipStreamQuery(waits)); // for what was recorded first
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipStreamSynchronize(held));
    CHECK(hipStreamSynchronize(waits));
    CHECK(hipEventQuery(e));
    CHECK(hipEventSynchronize(e));
}
CASE(event_recorded_elsewhere)
{
    Event e(hipEventInterprocess | hipEventDisableTiming);
    hipIpcEventHandle_t handle;
    CHECK(hipIpcGetEventHandle(&handle, e));
    Other process("recorder");
    process.give(handle);
    process.get<int>();
    GIVES(hipErrorNotReady, hipEventQuery(e));
    Stream s;
    CHECK(hipStreamWaitEvent(s, e, 0));
    GIVES(hipErrorNotReady, hipStreamQuery(s));
    process.give(0);
    process.get<int>();
    CHECK(hipStreamSynchronize(s));
    CHECK(hipEventQuery(e));
    process.give(0);
    process.ends_well();
}
CASE(event_waited_for_elsewhere)
{
    Event e(hipEventInterprocess | hipEventDisableTiming);
    Stream s;
    hipIpcEventHandle_t handle;
    CHECK(hipIpcGetEventHandle(&handle, e));
    Other process("listener");
    std::atomic<bool> open{false};
    CHECK(hipLaunchHostFunc(s, [](void *data) { while (!*static_cast<std::atomic<bool> *>(data)) std::this_thread::yield(); }, &open));
    CHECK(hipEventRecord(e, s));
    process.give(handle);
    try {
        process.get<int>();
    } catch (...) {
        open = true;
        throw;
    }
    open = true;
    process.ends_well();
    CHECK(hipStreamSynchronize(s));
}
CASE(nobody_waits_for_a_program_that_has_ended)
{
    Event e(hipEventInterprocess | hipEventDisableTiming);
    hipIpcEventHandle_t handle;
    CHECK(hipIpcGetEventHandle(&handle, e));
    Other process("deserter");
    process.give(handle);
    process.get<int>();
    GIVES(hipErrorNotReady, hipEventQuery(e));
    Stream s;
    CHECK(hipStreamWaitEvent(s, e, 0));
    process.give(0);
    process.ends();
    CHECK(hipEventQuery(e));
    CHECK(hipEventSynchronize(e));
    CHECK(hipStreamSynchronize(s));
    process.ends_well();
    CHECK(hipEventQuery(e));
}
CASE(pool_is_shared)
{
    hipMemPoolProps properties = {};
    properties.allocType = hipMemAllocationTypePinned;
    properties.handleTypes = hipMemHandleTypePosixFileDescriptor;
    properties.location.type = hipMemLocationTypeDevice;
    hipMemPool_t pool;
    CHECK(hipMemPoolCreate(&pool, &properties));
    unsigned *at;
    CHECK(hipMallocFromPoolAsync(reinterpret_cast<void **>(&at), COUNT * 4, pool, nullptr));
    CHECK(hipMemcpy(at, numbers().data(), COUNT * 4, hipMemcpyHostToDevice));
    int file = -1;
    hipMemPoolPtrExportData exported;
    CHECK(hipMemPoolExportToShareableHandle(&file, pool, hipMemHandleTypePosixFileDescriptor, 0));
    CHECK(hipMemPoolExportPointer(&exported, at));
    Other process("pool");
    process.give_file(file);
    close(file);
    process.give(exported);
    process.ends_well();
    std::vector<unsigned> seen(COUNT);
    CHECK(hipMemcpy(seen.data(), at, COUNT * 4, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < COUNT; i++)
        EQUAL(i + 1, seen[i]);
    CHECK(hipFree(at));
    CHECK(hipMemPoolDestroy(pool));
}
CASE(pool_is_imported_at_home)
{
    hipMemPoolProps properties = {};
    properties.allocType = hipMemAllocationTypePinned;
    properties.handleTypes = hipMemHandleTypePosixFileDescriptor;
    properties.location.type = hipMemLocationTypeDevice;
    hipMemPool_t pool, imported;
    CHECK(hipMemPoolCreate(&pool, &properties));
    unsigned *at, *same;
    CHECK(hipMallocFromPoolAsync(reinterpret_cast<void **>(&at), COUNT * 4, pool, nullptr));
    int file = -1;
    hipMemPoolPtrExportData exported;
    CHECK(hipMemPoolExportToShareableHandle(&file, pool, hipMemHandleTypePosixFileDescriptor, 0));
    CHECK(hipMemPoolImportFromShareableHandle(&imported, reinterpret_cast<void *>(intptr_t(file)),
                                              hipMemHandleTypePosixFileDescriptor, 0));
    close(file);
    CHECK(hipMemPoolExportPointer(&exported, at));
    CHECK(hipMemPoolImportPointer(reinterpret_cast<void **>(&same), imported, &exported));
    CHECK(hipMemset(at, 0, COUNT * 4));
    add_one<<<COUNT / 100, 100>>>(same);
    std::vector<unsigned> seen(COUNT);
    CHECK(hipMemcpy(seen.data(), at, COUNT * 4, hipMemcpyDeviceToHost));
    REQUIRE(seen == std::vector<unsigned>(COUNT, 1u));
    CHECK(hipFree(same));
    CHECK(hipMemcpy(seen.data(), at, COUNT * 4, hipMemcpyDeviceToHost));
    REQUIRE(seen == std::vector<unsigned>(COUNT, 1u));
    CHECK(hipFree(at));
    CHECK(hipMemPoolDestroy(imported));
    CHECK(hipMemPoolDestroy(pool));
}
CASE(virtual_memory_is_shared)
{
    hipMemAllocationProp properties = {};
    properties.type = hipMemAllocationTypePinned;
    properties.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    properties.location.type = hipMemLocationTypeDevice;
    size_t bytes = 0;
    CHECK(hipMemGetAllocationGranularity(&bytes, &properties, hipMemAllocationGranularityRecommended));
    hipMemGenericAllocationHandle_t memory;
    unsigned *at = nullptr;
    CHECK(hipMemCreate(&memory, bytes, &properties, 0));
    CHECK(hipMemAddressReserve(reinterpret_cast<void **>(&at), bytes, 0, nullptr, 0));
    CHECK(hipMemMap(at, bytes, 0, memory, 0));
    CHECK(hipMemcpy(at, numbers().data(), COUNT * 4, hipMemcpyHostToDevice));
    int file = -1;
    CHECK(hipMemExportToShareableHandle(&file, memory, hipMemHandleTypePosixFileDescriptor, 0));
    Other process("virtual_memory");
    process.give_file(file);
    close(file);
    process.give(bytes);
    process.ends_well();
    std::vector<unsigned> seen(COUNT);
    CHECK(hipMemcpy(seen.data(), at, COUNT * 4, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < COUNT; i++)
        EQUAL(i + 1, seen[i]);
    CHECK(hipMemUnmap(at, bytes));
    CHECK(hipMemAddressFree(at, bytes));
    CHECK(hipMemRelease(memory));
}

int main(int count, char **names)
{
    if (count != 3 || std::strcmp(names[1], "other"))
        return conformance::main_of(count, names);
    for (auto &each : other::ALL)
        if (!std::strcmp(each.name, names[2])) {
            std::string words = conformance::outcome(each.run);
            if (!words.empty())
                std::fprintf(stderr, "%s: %s\n", each.name, words.c_str());
            return !words.empty();
        }
    return 2;
}
