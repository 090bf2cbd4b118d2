// Asynchronous operations as a plan says, issued by several threads on streams of their own; test_order.py has the plan's model.
//
// PLAN: a file of 32-bit words, {kind, stream, a, b} for each operation, in an order in which each message is sent before it is
// received. Out: a line for each stream: its vector's sum, then what its host functions saw, as a hash and a count; a line
// with the resident memory, in KiB, of this process when a fifth of all was issued, and at the end.
#include <hip/hip_runtime.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "../../programs/check.h"

enum Kind : uint32_t { FILL, MIX, TO_HOST, FROM_HOST, CALL, STORE, FETCH, SEND, RECEIVE, ASK, KINDS };
struct Operation { uint32_t kind, stream, a, b; };
constexpr int LANES = 64, STREAMS = 16, THREADS = 8;
constexpr size_t BYTES = LANES * sizeof(uint32_t);

struct Lane { // what one stream works on
    hipStream_t stream;
    uint32_t *x, *y, *host; // two vectors on the device, one in pinned memory
    uint64_t hash = 0, calls = 0;
};
struct Call { Lane *lane; uint32_t factor; };
struct Message {
    uint32_t *vector = nullptr;
    hipEvent_t event{};
    std::atomic<bool> sent{false};
};

__global__ void mix(uint32_t *x, uint32_t c) { x[threadIdx.x] = x[threadIdx.x] * 3 + c + threadIdx.x; }

static Lane lanes[STREAMS];
static std::unique_ptr<Message[]> messages;
static std::atomic<size_t> issued{0};

static void call(void *data)
{
    Call *call = static_cast<Call *>(data);
    Lane &lane = *call->lane;
    for (int i = 0; i < LANES; i++)
        lane.host[i] = lane.host[i] * 5 + call->factor;
    lane.hash = lane.hash * 1099511628211u + lane.host[LANES - 1];
    lane.calls++;
    delete call;
}

static void send(Lane &lane, Message &message)
{
    CHECK(hipMallocAsync(reinterpret_cast<void **>(&message.vector), BYTES, lane.stream));
    CHECK(hipMemcpyAsync(message.vector, lane.x, BYTES, hipMemcpyDeviceToDevice, lane.stream));
    CHECK(hipEventCreateWithFlags(&message.event, hipEventDisableTiming));
    CHECK(hipEventRecord(message.event, lane.stream));
    message.sent = true;
}

static void receive(Lane &lane, Message &message)
{
    while (!message.sent)
        std::this_thread::yield();
    CHECK(hipStreamWaitEvent(lane.stream, message.event, 0));
    CHECK(hipMemcpyAsync(lane.x, message.vector, BYTES, hipMemcpyDeviceToDevice, lane.stream));
    CHECK(hipFreeAsync(message.vector, lane.stream));
    CHECK(hipEventDestroy(message.event));
}

static void issue(const Operation &o)
{
    Lane &lane = lanes[o.stream];
    hipError_t state;
    switch (o.kind) {
    case FILL: CHECK(hipMemsetD32Async(lane.x, int(o.a), LANES, lane.stream)); break;
    case MIX: mix<<<1, LANES, 0, lane.stream>>>(lane.x, o.a); CHECK(hipGetLastError()); break;
    case TO_HOST: CHECK(hipMemcpyAsync(lane.host, lane.x, BYTES, hipMemcpyDeviceToHost, lane.stream)); break;
    case FROM_HOST: CHECK(hipMemcpyAsync(lane.x, lane.host, BYTES, hipMemcpyHostToDevice, lane.stream)); break;
    case CALL: CHECK(hipLaunchHostFunc(lane.stream, call, new Call{&lane, o.a})); break;
    case STORE: CHECK(hipMemcpyAsync(lane.y, lane.x, BYTES, hipMemcpyDefault, lane.stream)); break;
    case FETCH: CHECK(hipMemcpyAsync(lane.x, lane.y, BYTES, hipMemcpyDefault, lane.stream)); break;
    case SEND: send(lane, messages[o.a]); break;
    case RECEIVE: receive(lane, messages[o.a]); break;
    case ASK: state = hipStreamQuery(lane.stream); REQUIRE(state == hipSuccess || state == hipErrorNotReady); break;
    }
    issued++;
}

static long resident()
{
    long pages = 0, all = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * 4;
}

static std::vector<Operation> read(const char *path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    std::vector<Operation> plan(size_t(file.tellg()) / sizeof(Operation));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(plan.data()), std::streamsize(plan.size() * sizeof(Operation)));
    return plan;
}

int main(int count, char **words)
{
    REQUIRE(count == 2);
    std::vector<Operation> plan = read(words[1]);
    messages.reset(new Message[plan.size()]);
    for (Lane &lane : lanes) {
        CHECK(hipStreamCreateWithFlags(&lane.stream, &lane - lanes < STREAMS / 2 ? hipStreamNonBlocking : hipStreamDefault));
        CHECK(hipMalloc(reinterpret_cast<void **>(&lane.x), BYTES));
        CHECK(hipMalloc(reinterpret_cast<void **>(&lane.y), BYTES));
        CHECK(hipHostMalloc(reinterpret_cast<void **>(&lane.host), BYTES, 0));
        CHECK(hipMemset(lane.x, 0, BYTES));
        CHECK(hipMemset(lane.y, 0, BYTES));
        std::memset(lane.host, 0, BYTES);
    }
    std::vector<std::thread> threads;
    std::atomic<long> early{0};
    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&, t] {
            for (const Operation &o : plan)
                if (o.stream % THREADS == uint32_t(t)) {
                    issue(o);
                    if (issued == plan.size() / 5)
                        early = resident();
                }
        });
    for (std::thread &thread : threads)
        thread.join();
    CHECK(hipDeviceSynchronize());
    for (Lane &lane : lanes) {
        std::vector<uint32_t> x(LANES);
        CHECK(hipMemcpy(x.data(), lane.x, BYTES, hipMemcpyDeviceToHost));
        uint32_t sum = 0;
        for (uint32_t value : x)
            sum = sum * 31 + value;
        std::printf("%u %llu %llu\n", sum, (unsigned long long)lane.hash, (unsigned long long)lane.calls);
        CHECK(hipStreamDestroy(lane.stream));
    }
    std::printf("%ld %ld\n", early.load(), resident());
    return 0;
}
