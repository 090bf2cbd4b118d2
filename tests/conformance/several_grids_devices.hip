// Launches of one grid on each of two devices; what devices are to each other.
// Linked with ROCm's device library.
#include "resources.h"

// What hip_cooperative_groups.h calls, which not every package of headers has: this_grid, this_multi_grid.

__global__ void nothing() {}
__global__ void other() {}
__global__ void sum_of_grid(int *to)
{
    atomicAdd(to, 1);
    __ockl_grid_sync();
    to[1] = to[0];
}
__global__ void ranks(unsigned *to)
{
    to[0] = __ockl_multi_grid_num_grids(), to[1] = __ockl_multi_grid_grid_rank(), to[2] = __ockl_multi_grid_size();
    to[3 + threadIdx.x] = __ockl_multi_grid_thread_rank();
}
__global__ void sync_of_all() { __ockl_multi_grid_sync(); }
__managed__ int shared_by_all = 5;
__global__ void add_to_shared() { atomicAdd(&shared_by_all, 1); }

struct OnDevice {
    explicit OnDevice(int device) { CHECK(hipSetDevice(device)); }
    ~OnDevice() { (void)hipSetDevice(0); }
};
struct TwoStreams {
    hipStream_t at[2];
    TwoStreams()
    {
        for (int i = 0; i < 2; i++) {
            OnDevice on(i);
            CHECK(hipStreamCreate(&at[i]));
        }
    }
    ~TwoStreams()
    {
        for (hipStream_t s : at)
            (void)hipStreamDestroy(s);
    }
};
static hipLaunchParams launch_of(void (*function)(), hipStream_t stream)
{
    return {reinterpret_cast<void *>(function), dim3(1), dim3(64), nullptr, 0, stream};
}

CASE(independent_grids)
{
    TwoStreams s;
    hipLaunchParams list[] = {launch_of(nothing, s.at[0]), launch_of(nothing, s.at[1])};
    CHECK(hipExtLaunchMultiKernelMultiDevice(list, 2, 0));
    CHECK(hipLaunchCooperativeKernelMultiDevice(list, 2, 0));
}
CASE(each_grid_syncs_with_itself)
{
    TwoStreams s;
    Device<int> first(2, 0), second(2, 0);
    int *at[] = {first, second};
    void *args[][1] = {{&at[0]}, {&at[1]}};
    hipLaunchParams list[2];
    for (int i = 0; i < 2; i++)
        list[i] = {reinterpret_cast<void *>(sum_of_grid), dim3(4), dim3(64), args[i], 0, s.at[i]};
    CHECK(hipLaunchCooperativeKernelMultiDevice(list, 2, 0));
    REQUIRE(first.all_are(256));
    REQUIRE(second.all_are(256));
}
CASE(grids_know_how_many_they_are)
{
    TwoStreams s;
    Device<unsigned> first(67, 0u), second(67, 0u);
    unsigned *at[] = {first, second};
    void *args[][1] = {{&at[0]}, {&at[1]}};
    hipLaunchParams list[2];
    for (int i = 0; i < 2; i++)
        list[i] = {reinterpret_cast<void *>(ranks), dim3(1), dim3(64), args[i], 0, s.at[i]};
    CHECK(hipLaunchCooperativeKernelMultiDevice(list, 2, 0));
    for (unsigned i = 0; i < 2; i++) {
        std::vector<unsigned> told = (i ? second : first).host();
        EQUAL(2u, told[0]);
        EQUAL(i, told[1]);
        EQUAL(128u, told[2]);
        EQUAL(64 * i + 63, told[66]);
    }
}
CASE(lists_refuse)
{
    TwoStreams s;
    hipLaunchParams list[] = {launch_of(nothing, s.at[0]), launch_of(nothing, s.at[1]), launch_of(nothing, s.at[0])};
    using Call = hipError_t (*)(hipLaunchParams *, int, unsigned);
    for (Call call : {Call(hipExtLaunchMultiKernelMultiDevice), Call(hipLaunchCooperativeKernelMultiDevice)}) {
        GIVES(hipErrorInvalidValue, call(nullptr, 2, 0));
        GIVES(hipErrorInvalidValue, call(list, 0, 0));
        GIVES(hipErrorInvalidValue, call(list, -1, 0));
        GIVES(hipErrorInvalidValue, call(list, 3, 0));
        GIVES(hipErrorInvalidValue, call(list, 2, 4));
        list[1].stream = s.at[0];
        GIVES(hipErrorInvalidDevice, call(list, 2, 0));
        list[1].stream = s.at[1];
        list[1].func = reinterpret_cast<void *>(other);
        GIVES(hipErrorInvalidValue, call(list, 2, 0));
        list[1].func = list[0].func;
        list[1].gridDim = dim3(2);
        GIVES(hipErrorInvalidValue, call(list, 2, 0));
        list[1].gridDim = dim3(1), list[1].blockDim = dim3(32);
        GIVES(hipErrorInvalidValue, call(list, 2, 0));
        list[1].blockDim = dim3(64), list[1].sharedMem = 1024;
        GIVES(hipErrorInvalidValue, call(list, 2, 0));
        list[1].sharedMem = 0;
    }
}
CASE(kernels_of_another_device)
{
    TwoStreams s;
    hipFunction_t f;
    CHECK(hipGetFuncBySymbol(&f, reinterpret_cast<const void *>(nothing)));
    GIVES(hipErrorInvalidHandle, hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s.at[1], nullptr, nullptr));
    hipFunctionLaunchParams list[] = {{f, 1, 1, 1, 1, 1, 1, 0, s.at[0], nullptr}, {f, 1, 1, 1, 1, 1, 1, 0, s.at[1], nullptr}};
    GIVES(hipErrorInvalidDevice, hipModuleLaunchCooperativeKernelMultiDevice(list, 2, 0));
    {
        OnDevice on(1);
        CHECK(hipGetFuncBySymbol(&list[1].function, reinterpret_cast<const void *>(nothing)));
    }
    CHECK(hipModuleLaunchCooperativeKernelMultiDevice(list, 2, 0));
}
ALONE(grids_that_wait_for_each_other_end) // with a fault, and not never
{
    TwoStreams s;
    hipLaunchParams list[] = {launch_of(sync_of_all, s.at[0]), launch_of(sync_of_all, s.at[1])};
    REQUIRE(hipLaunchCooperativeKernelMultiDevice(list, 2, 0) != hipSuccess);
}
CASE(no_sync_of_several_grids)
{
    int can = -1;
    CHECK(hipDeviceGetAttribute(&can, hipDeviceAttributeCooperativeMultiDeviceLaunch, 0));
    EQUAL(0, can);
}
CASE(managed_variables_of_all_devices)
{
    for (int i = 0; i < 2; i++) {
        OnDevice on(i);
        add_to_shared<<<1, 1>>>();
        CHECK(hipDeviceSynchronize());
    }
    EQUAL(7, shared_by_all);
    shared_by_all = 5;
}
CASE(links)
{
    uint32_t type[2] = {99, 99}, hops[2] = {99, 99};
    CHECK(hipExtGetLinkTypeAndHopCount(0, 1, &type[0], &hops[0]));
    CHECK(hipExtGetLinkTypeAndHopCount(1, 0, &type[1], &hops[1]));
    EQUAL(type[0], type[1]);
    EQUAL(1u, hops[0]);
    EQUAL(1u, hops[1]);
    GIVES(hipErrorInvalidDevice, hipExtGetLinkTypeAndHopCount(0, 2, &type[0], &hops[0]));
    GIVES(hipErrorInvalidDevice, hipExtGetLinkTypeAndHopCount(2, 3, &type[0], &hops[0]));
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(1, 1, &type[0], &hops[0]));
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(-1, 1, &type[0], &hops[0]));
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(0, 1, nullptr, &hops[0]));
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(0, 1, &type[0], nullptr));
}
CASE(attributes_of_peers)
{
    int value = -1;
    CHECK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 1));
    EQUAL(1, value);
    CHECK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrPerformanceRank, 0, 1));
    REQUIRE(value >= 0);
    GIVES(hipErrorInvalidDevice, hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 1, 1));
    GIVES(hipErrorInvalidDevice, hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 2));
    GIVES(hipErrorInvalidDevice, hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, -1, 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetP2PAttribute(&value, hipDeviceP2PAttr(10), 0, 1));
}
static int chosen_by(const std::vector<int> &devices, bool set)
{
    int found = -1;
    std::thread([&] {
        if (set)
            (void)hipSetDevice(0);
        if (hipSetValidDevices(const_cast<int *>(devices.data()), int(devices.size())) == hipSuccess)
            (void)hipGetDevice(&found);
    }).join();
    return found;
}
CASE(first_valid_device)
{
    EQUAL(1, chosen_by({1, 0}, false));
    EQUAL(0, chosen_by({0, 1}, false));
    EQUAL(0, chosen_by({}, false));
    EQUAL(0, chosen_by({1}, true));
    int devices[] = {0, 2};
    GIVES(hipErrorInvalidDevice, hipSetValidDevices(devices, 2));
    GIVES(hipErrorInvalidValue, hipSetValidDevices(devices, 3));
    GIVES(hipErrorInvalidValue, hipSetValidDevices(devices, -1));
    GIVES(hipErrorInvalidValue, hipSetValidDevices(nullptr, 1));
}
