// What cases work with, released when they end, also by a failure: streams, events, memory; and gates.
#pragma once
#include "case.h"

#include <atomic>
#include <chrono>
#include <thread>

#if HIP_VERSION < 50300000 // whose library has no host functions, but callbacks
inline hipError_t host_function_by_callback(hipStream_t stream, void (*function)(void *), void *data)
{
    struct Call {
        void (*function)(void *);
        void *data;
    };
    auto make = [](hipStream_t, hipError_t, void *call) {
        Call told = *static_cast<Call *>(call);
        delete static_cast<Call *>(call);
        told.function(told.data);
    };
    return hipStreamAddCallback(stream, make, new Call{function, data}, 0);
}
#define hipLaunchHostFunc host_function_by_callback
#endif

struct Stream {
    hipStream_t handle = nullptr;
    explicit Stream(unsigned flags = hipStreamNonBlocking) { CHECK(hipStreamCreateWithFlags(&handle, flags)); }
    ~Stream() { (void)hipStreamDestroy(handle); }
    Stream(const Stream &) = delete;
    operator hipStream_t() const { return handle; }
};

struct Event {
    hipEvent_t handle = nullptr;
    explicit Event(unsigned flags = hipEventDefault) { CHECK(hipEventCreateWithFlags(&handle, flags)); }
    ~Event() { (void)hipEventDestroy(handle); }
    Event(const Event &) = delete;
    operator hipEvent_t() const { return handle; }
};

// Device memory for some elements; `all_are` and `host` copy on the null stream, which waits for nothing that a gate holds
// in a stream of its own.
template <typename T> struct Device {
    T *at = nullptr;
    size_t count;
    explicit Device(size_t count) : count(count) { CHECK(hipMalloc(reinterpret_cast<void **>(&at), bytes())); }
    Device(size_t count, T value) : Device(count) { fill(value); }
    ~Device() { (void)hipFree(at); }
    Device(const Device &) = delete;
    operator T *() const { return at; }
    size_t bytes() const { return count * sizeof(T); }
    void fill(T value)
    {
        std::vector<T> from(count, value);
        CHECK(hipMemcpy(at, from.data(), bytes(), hipMemcpyHostToDevice));
    }
    std::vector<T> host() const
    {
        std::vector<T> to(count);
        CHECK(hipMemcpy(to.data(), at, bytes(), hipMemcpyDeviceToHost));
        return to;
    }
    bool all_are(T value) const { return host() == std::vector<T>(count, value); }
};

// Pinned host memory.
template <typename T> struct Pinned {
    T *at = nullptr;
    size_t count;
    explicit Pinned(size_t count, T value = {}, unsigned flags = hipHostMallocDefault) : count(count)
    {
        CHECK(hipHostMalloc(reinterpret_cast<void **>(&at), bytes(), flags));
        for (size_t i = 0; i < count; i++)
            at[i] = value;
    }
    ~Pinned() { (void)hipHostFree(at); }
    Pinned(const Pinned &) = delete;
    operator T *() const { return at; }
    size_t bytes() const { return count * sizeof(T); }
    bool all_are(T value) const
    {
        for (size_t i = 0; i < count; i++)
            if (at[i] != value)
                return false;
        return true;
    }
};

template <typename T> struct Managed {
    T *at = nullptr;
    size_t count;
    explicit Managed(size_t count) : count(count) { CHECK(hipMallocManaged(reinterpret_cast<void **>(&at), bytes(), hipMemAttachGlobal)); }
    ~Managed() { (void)hipFree(at); }
    Managed(const Managed &) = delete;
    operator T *() const { return at; }
    size_t bytes() const { return count * sizeof(T); }
};

// Holds streams by a host function that spins. A gate that nobody opens opens by itself, so that a call that waits for what
// it must not wait for fails its case and nothing hangs. States are never freed: a function may look at them late.
class Gate {
public:
    Gate() = default;
    ~Gate() { open(); }
    Gate(const Gate &) = delete;
    void hold(hipStream_t stream) { CHECK(hipLaunchHostFunc(stream, spin, state)); }
    void open() { state->open = true; }
    bool entered() const { return state->entered; }
    bool holds() const { return !state->open && !state->gave_up; }

private:
    struct State {
        std::atomic<bool> open{false}, entered{false}, gave_up{false};
    };
    static void spin(void *data)
    {
        State *state = static_cast<State *>(data);
        state->entered = true;
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!state->open) {
            std::this_thread::yield();
            if (std::chrono::steady_clock::now() > end)
                state->gave_up = true;
            if (state->gave_up)
                return;
        }
    }
    State *state = new State;
};

// Calls what must return while `stream` is held, and leave it busy; then lets it go on, and waits for it.
template <typename Call> void returns_while_held(hipStream_t stream, Call call)
{
    Gate gate;
    gate.hold(stream);
    hipError_t error = call();
    REQUIRE(gate.holds());
    CHECK(error);
    GIVES(hipErrorNotReady, hipStreamQuery(stream));
    gate.open();
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipStreamQuery(stream));
}

// As long as it takes, two seconds at most.
template <typename Condition> bool soon(Condition condition)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}
