// Two devices: the current one, streams and events of each, peers, pools, copies and launches over both; hidden ones.
#include "resources.h"

#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

constexpr size_t N = 1000;
__device__ unsigned variable = 7;
__managed__ unsigned managed = 1;
__global__ void add(unsigned *data, unsigned value)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        data[i] += value;
}
__global__ void add_to_managed() { managed++; }

// The device that a case leaves is the first.
struct On {
    explicit On(int device) { CHECK(hipSetDevice(device)); }
    ~On() { (void)hipSetDevice(0); }
};
static void synchronized()
{
    for (int device : {1, 0}) {
        CHECK(hipSetDevice(device));
        CHECK(hipDeviceSynchronize());
    }
}

CASE(two)
{
    int count = 0, device = -1;
    CHECK(hipGetDeviceCount(&count));
    EQUAL(2, count);
    On second(1);
    CHECK(hipGetDevice(&device));
    EQUAL(1, device);
    GIVES(hipErrorInvalidDevice, hipSetDevice(2));
    CHECK(hipGetDevice(&device));
    EQUAL(1, device);
}
CASE(threads_have_devices_of_their_own)
{
    On second(1);
    int theirs = -1, mine = -1;
    std::thread([&] { (void)hipGetDevice(&theirs); }).join();
    EQUAL(0, theirs);
    CHECK(hipGetDevice(&mine));
    EQUAL(1, mine);
}
CASE(they_differ)
{
    hipDeviceProp_t a, b;
    char first[64], second[64];
    CHECK(hipGetDeviceProperties(&a, 0));
    CHECK(hipGetDeviceProperties(&b, 1));
    CHECK(hipDeviceGetPCIBusId(first, sizeof first, 0));
    CHECK(hipDeviceGetPCIBusId(second, sizeof second, 1));
    REQUIRE(std::strcmp(first, second) != 0);
    int device = -1;
    CHECK(hipDeviceGetByPCIBusId(&device, second));
    EQUAL(1, device);
    REQUIRE(a.pciBusID != b.pciBusID || a.pciDeviceID != b.pciDeviceID);
#if HIP_VERSION_MAJOR >= 6
    REQUIRE(std::memcmp(a.uuid.bytes, b.uuid.bytes, 16) != 0);
#endif
}
CASE(work_on_each)
{
    for (int device : {0, 1}) {
        On current(device);
        Device<unsigned> d(N, 1u);
        add<<<4, 256>>>(d, 2);
        REQUIRE(d.all_are(3));
    }
}
CASE(variables_are_of_each)
{
    unsigned value = 70, back = 0;
    {
        On second(1);
        CHECK(hipMemcpyToSymbol(HIP_SYMBOL(variable), &value, 4));
    }
    CHECK(hipMemcpyFromSymbol(&back, HIP_SYMBOL(variable), 4));
    EQUAL(7u, back);
    On second(1);
    CHECK(hipMemcpyFromSymbol(&back, HIP_SYMBOL(variable), 4));
    EQUAL(70u, back);
}
CASE(managed_variables_are_of_all)
{
    managed = 1;
    for (int device : {0, 1}) {
        On current(device);
        add_to_managed<<<1, 1>>>();
        CHECK(hipDeviceSynchronize());
    }
    EQUAL(3u, managed);
}
CASE(streams_know_their_device)
{
    On second(1);
    Stream s;
    int device = -1;
#if HIP_VERSION_MAJOR >= 6
    CHECK(hipSetDevice(0));
    CHECK(hipStreamGetDevice(s, &device));
    EQUAL(1, device);
#endif
    Device<unsigned> d(N, 1u);
    CHECK(hipMemsetAsync(d, 0, d.bytes(), s)); // memory of one in a stream of the other
    CHECK(hipStreamSynchronize(s));
    REQUIRE(d.all_are(0));
}
CASE(launch_in_a_stream_of_the_other_is_refused)
{
    hipStream_t s;
    {
        On second(1);
        CHECK(hipStreamCreate(&s));
    }
    Device<unsigned> d(N, 1u);
    add<<<4, 256, 0, s>>>(d, 1);
    EQUAL(hipErrorInvalidHandle, hipGetLastError());
    CHECK(hipStreamDestroy(s));
}
CASE(events_across_devices)
{
    Event e;
    CHECK(hipEventRecord(e, nullptr));
    On second(1);
    Stream s;
    GIVES(hipErrorInvalidHandle, hipEventRecord(e, s)); // recorded where it was made only
    CHECK(hipStreamWaitEvent(s, e, 0));                 // but waited for everywhere
    CHECK(hipEventSynchronize(e));
    CHECK(hipEventQuery(e));
    Event other;
    CHECK(hipEventRecord(other, s));
    CHECK(hipEventSynchronize(other));
    float ms;
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, e, other));
}
CASE(streams_of_two_devices_wait_for_each_other)
{
    Device<unsigned> d(N, 1u);
    Stream first;
    Event e;
    Gate gate;
    gate.hold(first);
    add<<<4, 256, 0, first>>>(d, 1);
    CHECK(hipEventRecord(e, first));
    On second(1);
    Stream other;
    CHECK(hipStreamWaitEvent(other, e, 0));
    add<<<4, 256, 0, other>>>(d, 10);
    CHECK(hipGetLastError());
    REQUIRE(gate.holds());
    GIVES(hipErrorNotReady, hipStreamQuery(other));
    gate.open();
    CHECK(hipStreamSynchronize(other));
    REQUIRE(d.all_are(12));
}
CASE(synchronizing_one_does_not_wait_for_the_other)
{
    Stream first;
    Gate gate;
    gate.hold(first);
    {
        On second(1);
        CHECK(hipDeviceSynchronize());
        REQUIRE(gate.holds());
    }
    gate.open();
    CHECK(hipDeviceSynchronize());
}
CASE(pointers_know_their_device)
{
    hipPointerAttribute_t a;
    On second(1);
    Device<unsigned> d(N);
    CHECK(hipSetDevice(0));
    CHECK(hipPointerGetAttributes(&a, d));
    EQUAL(1, a.device);
}
CASE(copies_between_them)
{
    Device<unsigned> here(N, 5u);
    On second(1);
    Device<unsigned> there(N, 0u), third(N, 0u);
    CHECK(hipMemcpyPeer(there, 1, here, 0, there.bytes()));
    synchronized();
    REQUIRE(there.all_are(5));
    CHECK(hipMemcpy(third, here, third.bytes(), hipMemcpyDeviceToDevice));
    synchronized();
    REQUIRE(third.all_are(5));
    Stream s;
    CHECK(hipMemsetAsync(there, 1, there.bytes(), s));
    CHECK(hipMemcpyPeerAsync(here, 0, there, 1, there.bytes(), s));
    CHECK(hipStreamSynchronize(s));
    synchronized();
    REQUIRE(here.all_are(0x01010101));
}
CASE(peers)
{
    int can = 0, value = -1;
    CHECK(hipDeviceCanAccessPeer(&can, 0, 1));
    EQUAL(1, can);
    CHECK(hipDeviceEnablePeerAccess(1, 0));
    GIVES(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(1, 0));
    CHECK(hipDeviceDisablePeerAccess(1));
    GIVES(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(1));
    GIVES(hipErrorInvalidValue, hipDeviceEnablePeerAccess(1, 1));
    GIVES(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(0, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(2, 0));
    CHECK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 1));
    EQUAL(1, value);
    for (hipDeviceP2PAttr attribute : {hipDevP2PAttrPerformanceRank, hipDevP2PAttrNativeAtomicSupported, hipDevP2PAttrHipArrayAccessSupported})
        CHECK(hipDeviceGetP2PAttribute(&value, attribute, 0, 1));
    GIVES(hipErrorInvalidValue, hipDeviceGetP2PAttribute(&value, hipDeviceP2PAttr(99), 0, 1));
    GIVES(hipErrorInvalidDevice, hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 2));
}
CASE(link)
{
    uint32_t type = 99, hops = 99;
    CHECK(hipExtGetLinkTypeAndHopCount(0, 1, &type, &hops));
    REQUIRE(type <= 4); // HSA_AMD_LINK_INFO_TYPE: HyperTransport, QPI, PCIe, InfiniBand, XGMI
    REQUIRE(hops >= 1 && hops < 10);
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(1, 1, &type, &hops));
    GIVES(hipErrorInvalidDevice, hipExtGetLinkTypeAndHopCount(0, 2, &type, &hops));
}
CASE(pools_are_of_each)
{
    hipMemPool_t first, second;
    CHECK(hipDeviceGetDefaultMemPool(&first, 0));
    CHECK(hipDeviceGetDefaultMemPool(&second, 1));
    REQUIRE(first != second);
    GIVES(hipErrorInvalidDevice, hipDeviceSetMemPool(0, second));
    hipMemAccessDesc desc = {};
    desc.location.type = hipMemLocationTypeDevice;
    desc.location.id = 1;
    desc.flags = hipMemAccessFlagsProtReadWrite;
    hipMemAccessFlags flags;
    CHECK(hipMemPoolGetAccess(&flags, first, &desc.location));
    EQUAL(hipMemAccessFlagsProtNone, flags);
    CHECK(hipMemPoolSetAccess(first, &desc, 1));
    CHECK(hipMemPoolGetAccess(&flags, first, &desc.location));
    EQUAL(hipMemAccessFlagsProtReadWrite, flags);
}
CASE(launch_on_both)
{
    Device<unsigned> here(N, 1u);
    Stream first;
    On second(1);
    Device<unsigned> there(N, 2u);
    Stream other;
    CHECK(hipSetDevice(0));
    unsigned value = 10;
    void *arguments[2][2] = {{&here.at, &value}, {&there.at, &value}};
    hipLaunchParams both[2] = {};
    for (int i : {0, 1}) {
        both[i].func = reinterpret_cast<void *>(add);
        both[i].gridDim = dim3(4);
        both[i].blockDim = dim3(256);
        both[i].args = arguments[i];
        both[i].stream = i ? other : first;
    }
    CHECK(hipExtLaunchMultiKernelMultiDevice(both, 2, 0));
    synchronized();
    REQUIRE(here.all_are(11) && there.all_are(12));
    both[1].stream = first; // the same device twice
    GIVES(hipErrorInvalidDevice, hipExtLaunchMultiKernelMultiDevice(both, 2, 0));
    both[1].stream = other;
    both[1].gridDim = dim3(2);
    GIVES(hipErrorInvalidValue, hipExtLaunchMultiKernelMultiDevice(both, 2, 0));
}
CASE(managed_memory_is_prefetched_to_each)
{
    Managed<unsigned> m(1024);
    for (int device : {1, 0}) {
        CHECK(hipMemPrefetchAsync(m, 4096, device, nullptr));
        synchronized();
        int last = -5;
        CHECK(hipMemRangeGetAttribute(&last, 4, hipMemRangeAttributeLastPrefetchLocation, m, 4096));
        EQUAL(device, last);
    }
}

// The number and the bus ids of the devices that a program sees with these variables.
static std::string seen(const char *name, const char *value)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t process = fork();
    if (process == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        setenv(name, value, 1);
        setenv("CONFORMANCE_SHOW", "1", 1);
        execl("/proc/self/exe", "multi_devices", "show_devices", nullptr);
        _exit(127);
    }
    close(ends[1]);
    std::string text;
    char part[256];
    for (ssize_t got; text.find('\n') == text.npos && (got = read(ends[0], part, sizeof part)) > 0;)
        text.append(part, size_t(got));
    close(ends[0]);
    waitpid(process, nullptr, 0);
    return text.substr(0, text.find('\n'));
}
CASE(show_devices)
{
    int count = -1;
    hipError_t error = hipGetDeviceCount(&count);
    if (!getenv("CONFORMANCE_SHOW"))
        return;
    std::printf("%d %d", int(error), count);
    for (int i = 0; i < count; i++) {
        hipDeviceProp_t p;
        CHECK(hipGetDeviceProperties(&p, i));
        std::printf(" %x", unsigned(p.pciBusID));
    }
    std::printf("\n");
    std::fflush(stdout);
    _exit(0);
}
CASE(devices_are_hidden)
{
    std::string all = seen("CONFORMANCE", "1"), first, second; // "0 2 A B"
    first = all.substr(4, all.find(' ', 4) - 4);
    second = all.substr(all.rfind(' ') + 1);
    REQUIRE(all == "0 2 " + first + " " + second && first != second);
    for (const char *name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
        REQUIRE(seen(name, "1,0") == "0 2 " + second + " " + first);
        REQUIRE(seen(name, "0,5,1") == "0 1 " + first);
        REQUIRE(seen(name, "-1") == "100 0");
    }
    REQUIRE(seen("ROCR_VISIBLE_DEVICES", "") == "100 0");
    REQUIRE(seen("HIP_VISIBLE_DEVICES", "") == all);
}
