// Copies that touch what is not there: refused to the byte, with any numbers, and nobody crashes. What waits and what does not.
#include "resources.h"

#include <sys/mman.h>
#include <unistd.h>

constexpr size_t HUGE = ~size_t(0);
__device__ int variable[16];

// Pages of which the last cannot be touched.
struct Guarded {
    size_t page = size_t(sysconf(_SC_PAGESIZE));
    char *at = static_cast<char *>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    Guarded() { REQUIRE(at != MAP_FAILED && !mprotect(at + page, page, PROT_NONE)); }
    ~Guarded() { munmap(at, 2 * page); }
    Guarded(const Guarded &) = delete;
    char *end() { return at + page; }
};
static char *wild() { return reinterpret_cast<char *>(0x10); }
static char *beyond() { return reinterpret_cast<char *>(HUGE - 15); } // so near the end that addresses wrap

static hipError_t box(void *from, void *to, hipMemcpyKind kind, hipPos from_at = make_hipPos(0, 0, 0))
{
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(from, 16, 16, 4);
    copy.dstPtr = make_hipPitchedPtr(to, 16, 16, 4);
    copy.srcPos = from_at;
    copy.extent = make_hipExtent(8, 2, 2);
    copy.kind = kind;
    return hipMemcpy3D(&copy);
}

CASE(wild_sources)
{
    Device<char> d(256, 3);
    Pinned<char> p(256, 3);
    for (char *at : {wild(), beyond()}) {
        GIVES(hipErrorInvalidValue, hipMemcpy(d, at, 64, hipMemcpyHostToDevice));
        GIVES(hipErrorInvalidValue, hipMemcpy(p, at, 64, hipMemcpyHostToHost));
        GIVES(hipErrorInvalidValue, hipMemcpyAsync(d, at, 64, hipMemcpyHostToDevice, nullptr));
        GIVES(hipErrorInvalidValue, hipMemcpy2D(d, 16, at, 16, 8, 4, hipMemcpyHostToDevice));
        GIVES(hipErrorInvalidValue, hipMemcpy2DAsync(d, 16, at, 16, 8, 4, hipMemcpyHostToDevice, nullptr));
        GIVES(hipErrorInvalidValue, box(at, d.at, hipMemcpyHostToDevice));
        GIVES(hipErrorInvalidValue, hipMemcpyToSymbol(HIP_SYMBOL(variable), at, 64));
    }
    REQUIRE(d.all_are(3) && p.all_are(3));
}
CASE(wild_targets)
{
    Device<char> d(256, 3);
    for (char *at : {wild(), beyond()}) {
        GIVES(hipErrorInvalidValue, hipMemcpy(at, d, 64, hipMemcpyDeviceToHost));
        GIVES(hipErrorInvalidValue, hipMemcpyAsync(at, d, 64, hipMemcpyDefault, nullptr));
        GIVES(hipErrorInvalidValue, hipMemcpy2D(at, 16, d, 16, 8, 4, hipMemcpyDeviceToHost));
        GIVES(hipErrorInvalidValue, box(d.at, at, hipMemcpyDeviceToHost));
        GIVES(hipErrorInvalidValue, hipMemcpyFromSymbol(at, HIP_SYMBOL(variable), 64));
    }
}
CASE(host_memory_that_ends)
{
    Guarded host;
    Device<char> d(4096, 3);
    CHECK(hipMemcpy(d, host.end() - 64, 64, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy(d, host.end() - 64, 65, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy(host.end() - 64, d, 65, hipMemcpyDeviceToHost));
    CHECK(hipMemcpy2D(host.end() - 56, 16, d, 16, 8, 4, hipMemcpyDeviceToHost)); // the last row is not whole
    GIVES(hipErrorInvalidValue, hipMemcpy2D(host.end() - 55, 16, d, 16, 8, 4, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, 16, host.end() - 55, 16, 8, 4, hipMemcpyHostToDevice));
}
CASE(registered_memory_that_ends)
{
    std::vector<char> host(8192, 1);
    Device<char> d(8192, 3);
    CHECK(hipHostRegister(host.data(), 4096, hipHostRegisterDefault));
    hipError_t whole = hipMemcpy(d, host.data(), 4096, hipMemcpyHostToDevice);
    hipError_t more = hipMemcpy(d, host.data(), 4097, hipMemcpyHostToDevice);
    CHECK(hipHostUnregister(host.data()));
    CHECK(whole);
    GIVES(hipErrorInvalidValue, more);
}
CASE(device_memory_that_ends)
{
    Device<char> d(64, 3), next(64, 4);
    std::vector<char> host(4096, 1);
    CHECK(hipMemcpy2D(d, 16, host.data(), 16, 16, 4, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d.at + 1, 16, host.data(), 16, 16, 4, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, 17, host.data(), 16, 16, 4, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, 16, host.data(), 16, 16, 5, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, box(host.data(), d.at, hipMemcpyHostToDevice)); // its second slice begins there
    REQUIRE(next.all_are(4));
}
CASE(numbers_without_end)
{
    Device<char> d(64, 3);
    std::vector<char> host(64, 1);
    void *at = host.data();
    hipMemcpyKind kind = hipMemcpyHostToDevice;
    GIVES(hipErrorInvalidValue, hipMemcpy(d, at, HUGE, kind));
    GIVES(hipErrorInvalidValue, hipMemcpyDtoD(d.at, d.at, HUGE));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, HUGE, at, HUGE, 8, 2, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, HUGE / 2 + 2, at, 8, 8, 3, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, 8, at, 8, 8, HUGE, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, HUGE, at, HUGE, HUGE, HUGE, kind));
    for (size_t number : {HUGE, HUGE / 2 + 1, HUGE / 16 + 1}) {
        GIVES(hipErrorInvalidValue, box(at, d.at, kind, make_hipPos(number, 0, 0)));
        GIVES(hipErrorInvalidValue, box(at, d.at, kind, make_hipPos(0, number, 0)));
        GIVES(hipErrorInvalidValue, box(at, d.at, kind, make_hipPos(0, 0, number)));
        hipMemcpy3DParms copy = {};
        copy.srcPtr = copy.dstPtr = make_hipPitchedPtr(d.at, 8, 8, 4);
        copy.kind = hipMemcpyDeviceToDevice;
        for (hipExtent extent : {make_hipExtent(number, 1, 1), make_hipExtent(8, number, 1), make_hipExtent(8, 4, number)}) {
            copy.extent = extent;
            GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
        }
        copy.extent = make_hipExtent(8, 1, 1);
        copy.srcPtr.ysize = number;
        copy.srcPos.z = 16;
        GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
        GIVES(hipErrorInvalidValue, hipMemcpyToSymbol(HIP_SYMBOL(variable), at, 4, number));
        GIVES(hipErrorInvalidValue, hipMemcpyToSymbol(HIP_SYMBOL(variable), at, number, 4));
    }
    REQUIRE(d.all_are(3));
}
CASE(driver_numbers_without_end)
{
    Device<char> d(64, 3), e(64, 4);
    HIP_MEMCPY3D good = {};
    good.srcMemoryType = good.dstMemoryType = hipMemoryTypeDevice;
    good.srcDevice = d.at, good.dstDevice = e.at;
    good.srcPitch = good.dstPitch = 8, good.srcHeight = good.dstHeight = 4;
    good.WidthInBytes = 4, good.Height = 2, good.Depth = 1;
    for (auto field : {&HIP_MEMCPY3D::srcXInBytes, &HIP_MEMCPY3D::srcY, &HIP_MEMCPY3D::srcZ, &HIP_MEMCPY3D::dstXInBytes,
                       &HIP_MEMCPY3D::dstY, &HIP_MEMCPY3D::dstZ, &HIP_MEMCPY3D::WidthInBytes, &HIP_MEMCPY3D::Height,
                       &HIP_MEMCPY3D::Depth})
        for (size_t number : {HUGE, HUGE / 2, HUGE / 8 + 1, size_t(9)}) {
            HIP_MEMCPY3D copy = good;
            copy.*field = number;
            GIVES(hipErrorInvalidValue, hipDrvMemcpy3D(&copy));
        }
    REQUIRE(e.all_are(4));
    CHECK(hipDrvMemcpy3D(&good));
}
CASE(driver_types_must_fit)
{
    Device<char> d(64, 3);
    std::vector<char> host(64, 1);
    hip_Memcpy2D good = {}, copy;
    good.srcMemoryType = hipMemoryTypeHost, good.srcHost = host.data(), good.srcPitch = 8;
    good.dstMemoryType = hipMemoryTypeDevice, good.dstDevice = d.at, good.dstPitch = 8;
    good.WidthInBytes = 8, good.Height = 8;
    copy = good, copy.srcMemoryType = hipMemoryTypeDevice, copy.srcDevice = host.data();
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&copy));
    copy = good, copy.srcMemoryType = hipMemoryType(99);
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&copy));
    copy = good, copy.dstMemoryType = hipMemoryTypeArray;
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&copy));
    copy = good, copy.srcHost = wild();
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&copy));
    GIVES(hipErrorInvalidValue, hipDrvMemcpy2DUnaligned(nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyParam2DAsync(nullptr, nullptr));
    copy = good, copy.srcPitch = copy.dstPitch = 0; // rows lie one after another
    CHECK(hipMemcpyParam2D(&copy));
    REQUIRE(d.all_are(1));
}
CASE(sides_of_the_device_are_hips)
{
    std::vector<char> a(64, 1), b(64, 2);
    Device<char> d(64, 3);
    GIVES(hipErrorInvalidValue, hipMemcpy2D(a.data(), 8, b.data(), 8, 8, 8, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(a.data(), 8, d, 8, 8, 8, hipMemcpyDeviceToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(a.data(), 8, b.data(), 8, 8, 8, hipMemcpyDeviceToHost));
    CHECK(hipMemcpy2D(a.data(), 8, b.data(), 8, 8, 8, hipMemcpyHostToHost));
    CHECK(hipMemcpy2D(a.data(), 8, d, 8, 8, 8, hipMemcpyHostToHost));
    REQUIRE(a == std::vector<char>(64, 3));
}
CASE(overlapping_lines)
{
    Device<int> d(64);
    std::vector<int> values(64);
    for (int i = 0; i < 64; i++)
        values[size_t(i)] = i;
    CHECK(hipMemcpy(d, values.data(), 256, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(d.at, d.at, 256, hipMemcpyDeviceToDevice));
    CHECK(hipMemcpy(d.at + 1, d.at, 252, hipMemcpyDeviceToDevice));
    std::vector<int> after = d.host();
    for (int i = 1; i < 64; i++)
        EQUAL(i - 1, after[size_t(i)]);
}
CASE(between_host_memories_waits)
{
    Stream s;
    Pinned<int> p(64, 1), q(64, 0);
    std::atomic<bool> opened{false};
    Gate gate;
    gate.hold(s);
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        opened = true;
        gate.open();
    });
    hipError_t error = hipMemcpyAsync(q, p, 256, hipMemcpyHostToHost, s);
    bool waited = opened;
    opener.join();
    CHECK(error);
    REQUIRE(waited && q.all_are(1));
}
CASE(fills_of_device_memory_return)
{
    Stream s(hipStreamDefault);
    Device<int> d(64, 0);
    returns_while_held(s, [&] { return hipMemset(d, 1, 256); });
    REQUIRE(d.all_are(0x01010101));
    returns_while_held(s, [&] { return hipMemset2D(d, 32, 2, 32, 8); });
    REQUIRE(d.all_are(0x02020202));
    returns_while_held(s, [&] { return hipMemsetD32(d.at, 3, 64); });
    REQUIRE(d.all_are(3));
    returns_while_held(s, [&] { return hipMemset3D(make_hipPitchedPtr(d.at, 32, 32, 4), 4, make_hipExtent(32, 4, 2)); });
    REQUIRE(d.all_are(0x04040404));
}
CASE(fills_of_host_memory_wait)
{
    Stream s(hipStreamDefault);
    Pinned<int> p(64, 0);
    Gate gate;
    gate.hold(s);
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    hipError_t error = hipMemset(p, 1, 256);
    bool done = p.all_are(0x01010101);
    opener.join();
    CHECK(error);
    REQUIRE(done);
}
#if HIP_VERSION_MAJOR >= 7
CASE(fills_of_rows_refuse)
{
    Device<unsigned> d(32, 0u);
    GIVES(hipErrorInvalidValue, hipMemsetD2D32(d.at, 15, 1, 4, 2));
    GIVES(hipErrorInvalidValue, hipMemsetD2D32(d.at, 32, 1, 8, 5));
    GIVES(hipErrorInvalidValue, hipMemsetD2D16(d.at, 32, 1, HUGE / 2 + 2, 1));
    GIVES(hipErrorInvalidValue, hipMemsetD2D8(nullptr, 32, 1, 8, 1));
    GIVES(hipErrorInvalidValue, hipMemsetD2D8Async(d.at, HUGE, 1, 8, 3, nullptr));
    CHECK(hipMemsetD2D16Async(d.at, 32, 1, 0, 4, nullptr));
    REQUIRE(d.all_are(0u));
}
CASE(batches_stop_where_one_fails)
{
    Device<int> a(16, 1), b(16, 0), c(16, 0);
    void *to[] = {b.at, wild(), c.at}, *from[] = {a.at, a.at, a.at};
    size_t bytes[] = {64, 64, 64}, failed = 7;
    GIVES(hipErrorInvalidValue, hipMemcpyBatchAsync(to, from, bytes, 3, nullptr, nullptr, 0, &failed, nullptr));
    EQUAL(1u, failed);
    CHECK(hipDeviceSynchronize());
    REQUIRE(b.all_are(1) && c.all_are(0));
    hipMemcpyAttributes attributes = {};
    size_t place = 0;
    GIVES(hipErrorNotSupported, hipMemcpyBatchAsync(to, from, bytes, 1, &attributes, &place, 1, &failed, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyBatchAsync(to, from, bytes, 1, nullptr, nullptr, 0, nullptr, nullptr));
}
#endif
