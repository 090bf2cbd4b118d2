// What cases of graphs share: owners that destroy what they hold, two kernels, and nodes in a line each.
#pragma once
#include "case.h"

#include <atomic>
#include <initializer_list>
#include <thread>
#include <vector>

constexpr int N = 64;

[[maybe_unused]] static __global__ void add(int *data, int amount) { data[threadIdx.x] += amount; }
[[maybe_unused]] static __global__ void multiply(int *data, int factor) { data[threadIdx.x] *= factor; }

struct Stream {
    hipStream_t is;
    explicit Stream(unsigned flags = 0) { CHECK(hipStreamCreateWithFlags(&is, flags)); }
    ~Stream() { (void)hipStreamDestroy(is); }
    operator hipStream_t() const { return is; }
};

struct Event {
    hipEvent_t is;
    Event() { CHECK(hipEventCreate(&is)); }
    ~Event() { (void)hipEventDestroy(is); }
    operator hipEvent_t() const { return is; }
};

struct Graph {
    hipGraph_t is = nullptr;
    Graph() { CHECK(hipGraphCreate(&is, 0)); }
    explicit Graph(hipGraph_t made) : is(made) {}
    ~Graph() { (void)hipGraphDestroy(is); }
    operator hipGraph_t() const { return is; }
    size_t size() const
    {
        size_t count = ~size_t(0);
        CHECK(hipGraphGetNodes(is, nullptr, &count));
        return count;
    }
};

struct Executable {
    hipGraphExec_t is = nullptr;
    explicit Executable(hipGraph_t graph) { CHECK(hipGraphInstantiate(&is, graph, nullptr, nullptr, 0)); }
    Executable(hipGraph_t graph, unsigned long long flags) { CHECK(hipGraphInstantiateWithFlags(&is, graph, flags)); }
    ~Executable() { (void)hipGraphExecDestroy(is); }
    operator hipGraphExec_t() const { return is; }
    void run(hipStream_t stream) const
    {
        CHECK(hipGraphLaunch(is, stream));
        CHECK(hipStreamSynchronize(stream));
    }
};

// N numbers on the device.
struct Numbers {
    int *is = nullptr;
    explicit Numbers(int value = 0)
    {
        CHECK(hipMalloc(&is, N * sizeof(int)));
        *this = value;
    }
    Numbers(const Numbers &) = delete;
    ~Numbers() { (void)hipFree(is); }
    void operator=(int value) { CHECK(hipMemcpy(is, std::vector<int>(N, value).data(), N * sizeof(int), hipMemcpyHostToDevice)); }
    std::vector<int> all() const
    {
        std::vector<int> host(N);
        CHECK(hipMemcpy(host.data(), is, N * sizeof(int), hipMemcpyDeviceToHost));
        return host;
    }
    bool operator==(int value) const { return all() == std::vector<int>(N, value); }
    operator int *() const { return is; }
};

using Nodes = std::initializer_list<hipGraphNode_t>;

// The parameters of add<<<1, N>>>(data, number), or of another kernel of such arguments; lives as long as they do.
struct Launch {
    int *data, number;
    void *args[2];
    hipKernelNodeParams params = {};
    Launch(void (*function)(int *, int), int *data, int number) : data(data), number(number)
    {
        args[0] = &this->data;
        args[1] = &this->number;
        params.func = reinterpret_cast<void *>(function);
        params.gridDim = dim3(1);
        params.blockDim = dim3(N);
        params.kernelParams = args;
    }
    Launch(const Launch &) = delete;
};

inline hipGraphNode_t launch_node(hipGraph_t graph, Nodes before, void (*function)(int *, int), int *data, int number)
{
    Launch launch(function, data, number);
    hipGraphNode_t node;
    CHECK(hipGraphAddKernelNode(&node, graph, before.begin(), before.size(), &launch.params));
    return node;
}

inline hipGraphNode_t empty_node(hipGraph_t graph, Nodes before = {})
{
    hipGraphNode_t node;
    CHECK(hipGraphAddEmptyNode(&node, graph, before.begin(), before.size()));
    return node;
}

inline hipGraphNode_t copy_node(hipGraph_t graph, Nodes before, void *to, const void *from, size_t bytes = N * sizeof(int),
                                hipMemcpyKind kind = hipMemcpyDefault)
{
    hipGraphNode_t node;
    CHECK(hipGraphAddMemcpyNode1D(&node, graph, before.begin(), before.size(), to, from, bytes, kind));
    return node;
}

inline hipMemsetParams fill_params(void *to, unsigned value, unsigned element = 4, size_t width = N, size_t height = 1,
                                   size_t pitch = 0)
{
    hipMemsetParams params = {};
    params.dst = to;
    params.elementSize = element;
    params.height = height;
    params.pitch = pitch;
    params.value = value;
    params.width = width;
    return params;
}

inline hipGraphNode_t fill_node(hipGraph_t graph, Nodes before, int *to, unsigned value)
{
    hipMemsetParams params = fill_params(to, value);
    hipGraphNode_t node;
    CHECK(hipGraphAddMemsetNode(&node, graph, before.begin(), before.size(), &params));
    return node;
}

inline void count_call(void *number) { ++*static_cast<std::atomic<int> *>(number); }

inline hipGraphNode_t host_node(hipGraph_t graph, Nodes before, std::atomic<int> &number)
{
    hipHostNodeParams params = {count_call, &number};
    hipGraphNode_t node;
    CHECK(hipGraphAddHostNode(&node, graph, before.begin(), before.size(), &params));
    return node;
}

// A handle that never was one, of any kind.
template <typename Handle> Handle wild() { return reinterpret_cast<Handle>(uintptr_t(0xFFFF)); }
