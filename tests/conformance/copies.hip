// Copies: of one, two and three dimensions, between all kinds of memory, to and from variables; what they refuse.
#include "resources.h"

constexpr size_t HUGE = ~size_t(0);
__device__ int variable[64];
__constant__ int constant[64];

__global__ void read_variable(int *to) { to[threadIdx.x] = variable[threadIdx.x] + constant[threadIdx.x]; }

static bool pageable_access()
{
    int can;
    CHECK(hipDeviceGetAttribute(&can, hipDeviceAttributePageableMemoryAccess, 0));
    return can;
}

CASE(null_is_invalid)
{
    Device<char> d(64, 0);
    char host[64];
    GIVES(hipErrorInvalidValue, hipMemcpy(nullptr, host, 64, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy(d, nullptr, 64, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpyAsync(nullptr, host, 64, hipMemcpyHostToDevice, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyAsync(d, nullptr, 64, hipMemcpyHostToDevice, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyWithStream(nullptr, host, 64, hipMemcpyHostToDevice, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyHtoD(hipDeviceptr_t(nullptr), host, 64));
    GIVES(hipErrorInvalidValue, hipMemcpyHtoD(d.at, nullptr, 64));
    GIVES(hipErrorInvalidValue, hipMemcpyDtoH(nullptr, d.at, 64));
    GIVES(hipErrorInvalidValue, hipMemcpyDtoH(host, hipDeviceptr_t(nullptr), 64));
    GIVES(hipErrorInvalidValue, hipMemcpyDtoD(hipDeviceptr_t(nullptr), d.at, 64));
    GIVES(hipErrorInvalidValue, hipMemcpyDtoD(d.at, hipDeviceptr_t(nullptr), 64));
}
CASE(nothing_to_copy_is_done)
{
    Device<char> d(64, 5);
    char host[64];
    CHECK(hipMemcpy(d, host, 0, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(nullptr, nullptr, 0, hipMemcpyDefault));
    CHECK(hipMemcpyAsync(d, host, 0, hipMemcpyHostToDevice, nullptr));
    CHECK(hipMemcpyDtoD(d.at, d.at, 0));
    CHECK(hipMemcpy2D(d, 8, host, 8, 0, 4, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2D(d, 8, host, 8, 4, 0, hipMemcpyHostToDevice));
    REQUIRE(d.all_are(5));
}
CASE(kind_must_be_one)
{
    Device<char> d(64, 0);
    char host[64] = {};
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy(d, host, 64, hipMemcpyKind(-1)));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy(d, host, 64, hipMemcpyKind(77)));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyAsync(d, host, 64, hipMemcpyKind(-1), nullptr));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyWithStream(d, host, 64, hipMemcpyKind(-1), nullptr));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy2D(d, 8, host, 8, 8, 8, hipMemcpyKind(-1)));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy2DAsync(d, 8, host, 8, 8, 8, hipMemcpyKind(-1), nullptr));
}
CASE(beyond_the_end_is_invalid)
{
    Device<char> d(64, 0), e(128, 0);
    std::vector<char> host(1024, 1);
    GIVES(hipErrorInvalidValue, hipMemcpy(d, host.data(), 65, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy(host.data(), d, 65, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidValue, hipMemcpy(d, e, 65, hipMemcpyDeviceToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy(e, d, 65, hipMemcpyDeviceToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy(d.at + 60, host.data(), 5, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpyAsync(d, host.data(), 65, hipMemcpyHostToDevice, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyHtoD(d.at, host.data(), 65));
    GIVES(hipErrorInvalidValue, hipMemcpyDtoH(host.data(), d.at, 65));
    GIVES(hipErrorInvalidValue, hipMemcpyDtoD(d.at, e.at, 65));
    REQUIRE(d.all_are(0));
}
CASE(pageable_memory_is_no_device_memory)
{
    std::vector<char> a(64, 1), b(64, 2);
    if (!pageable_access()) {
        GIVES(hipErrorInvalidValue, hipMemcpy(a.data(), b.data(), 64, hipMemcpyDeviceToDevice));
        GIVES(hipErrorInvalidValue, hipMemcpy(a.data(), b.data(), 64, hipMemcpyHostToDevice));
        GIVES(hipErrorInvalidValue, hipMemcpy(a.data(), b.data(), 64, hipMemcpyDeviceToHost));
        REQUIRE(a == std::vector<char>(64, 1));
    }
    CHECK(hipMemcpy(a.data(), b.data(), 64, hipMemcpyHostToHost));
    REQUIRE(a == b);
    b.assign(64, 3);
    CHECK(hipMemcpy(a.data(), b.data(), 64, hipMemcpyDefault));
    REQUIRE(a == b);
}
CASE(between_all_kinds_of_memory)
{
    Device<int> d(64), e(64);
    Pinned<int> p(64), q(64);
    Managed<int> m(64), n(64);
    std::vector<int> h(64), from(64);
    int *places[] = {d, e, p, q, m, n, h.data()};
    for (int *source : places)
        for (int *target : places)
            if (source != target) {
                for (int &value : from)
                    value = int((source - target) ^ (&value - from.data()));
                std::vector<int> to(64);
                CHECK(hipMemcpy(source, from.data(), 256, hipMemcpyDefault));
                CHECK(hipMemcpy(target, source, 256, hipMemcpyDefault));
                CHECK(hipMemcpy(to.data(), target, 256, hipMemcpyDefault));
                REQUIRE(from == to);
            }
}
CASE(with_stream_waits)
{
    Stream s;
    Device<int> d(64, 3);
    Pinned<int> p(64, 0);
    CHECK(hipMemcpyWithStream(p, d, d.bytes(), hipMemcpyDeviceToHost, s));
    REQUIRE(p.all_are(3));
}
CASE(rows_refuse)
{
    Device<char> d(64, 0);
    std::vector<char> host(64, 1);
    hipMemcpyKind kind = hipMemcpyHostToDevice;
    GIVES(hipErrorInvalidPitchValue, hipMemcpy2D(d, 7, host.data(), 8, 8, 8, kind));
    GIVES(hipErrorInvalidPitchValue, hipMemcpy2D(d, 8, host.data(), 7, 8, 8, kind));
    GIVES(hipErrorInvalidPitchValue, hipMemcpy2DAsync(d, 7, host.data(), 8, 8, 8, kind, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(nullptr, 8, host.data(), 8, 8, 8, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, 8, nullptr, 8, 8, 8, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(d, 8, host.data(), 8, 8, 9, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2D(host.data(), 8, d, 8, 8, 9, hipMemcpyDeviceToHost));
    REQUIRE(d.all_are(0));
}
CASE(rows)
{
    Device<unsigned char> d(100, 0);
    std::vector<unsigned char> host(64), back(100, 9);
    for (size_t i = 0; i < 64; i++)
        host[i] = (unsigned char)i;
    CHECK(hipMemcpy2D(d, 10, host.data(), 8, 5, 8, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2D(back.data(), 10, d, 10, 10, 10, hipMemcpyDeviceToHost));
    for (size_t y = 0; y < 10; y++)
        for (size_t x = 0; x < 10; x++)
            EQUAL(x < 5 && y < 8 ? int(y * 8 + x) : 0, int(back[y * 10 + x]));
}
static hipMemcpy3DParms box(void *from, void *to, hipMemcpyKind kind)
{
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(from, 8, 8, 4);
    copy.dstPtr = make_hipPitchedPtr(to, 8, 8, 4);
    copy.extent = make_hipExtent(8, 4, 2);
    copy.kind = kind;
    return copy;
}
CASE(boxes)
{
    Device<unsigned char> d(64, 0);
    std::vector<unsigned char> host(64), back(64, 9);
    for (size_t i = 0; i < 64; i++)
        host[i] = (unsigned char)i;
    hipMemcpy3DParms copy = box(host.data(), d.at, hipMemcpyHostToDevice);
    copy.srcPos = make_hipPos(1, 1, 1);
    copy.dstPos = make_hipPos(2, 0, 0);
    copy.extent = make_hipExtent(4, 2, 1);
    CHECK(hipMemcpy3D(&copy));
    copy = box(d.at, back.data(), hipMemcpyDeviceToHost);
    CHECK(hipMemcpy3D(&copy));
    for (size_t i = 0; i < 64; i++) {
        size_t x = i % 8, y = i / 8 % 4, z = i / 32;
        bool inside = x >= 2 && x < 6 && y < 2 && z < 1;
        EQUAL(inside ? int((x - 1) + (y + 1) * 8 + 32) : 0, int(back[i]));
    }
}
CASE(boxes_refuse)
{
    Device<unsigned char> d(64, 0);
    std::vector<unsigned char> host(64);
    GIVES(hipErrorInvalidValue, hipMemcpy3D(nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpy3DAsync(nullptr, nullptr));
    hipMemcpy3DParms good = box(host.data(), d.at, hipMemcpyHostToDevice), copy = good;
    copy.srcPtr.ptr = nullptr;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.dstPtr.ptr = nullptr;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.srcPtr.pitch = 7;
    GIVES(hipErrorInvalidPitchValue, hipMemcpy3D(&copy));
    copy = good, copy.dstPtr.pitch = 7;
    GIVES(hipErrorInvalidPitchValue, hipMemcpy3D(&copy));
    copy = good, copy.dstPtr.pitch = HUGE;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.extent.width = 9;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.dstPos.x = 1;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.extent.depth = 3;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.extent.height = 100;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.kind = hipMemcpyKind(-1);
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy3D(&copy));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy3DAsync(&copy, nullptr));
    REQUIRE(d.all_are(0));
}
CASE(empty_boxes_are_done)
{
    Device<unsigned char> d(64, 0);
    std::vector<unsigned char> host(64, 1);
    for (hipExtent extent : {make_hipExtent(0, 1, 1), make_hipExtent(1, 0, 1), make_hipExtent(1, 1, 0)}) {
        hipMemcpy3DParms copy = box(host.data(), d.at, hipMemcpyHostToDevice);
        copy.extent = extent;
        CHECK(hipMemcpy3D(&copy));
    }
    REQUIRE(d.all_are(0));
}
static hip_Memcpy2D driver_rows(const void *from, hipMemoryType from_type, void *to, hipMemoryType to_type)
{
    hip_Memcpy2D copy = {};
    copy.srcMemoryType = from_type;
    copy.srcHost = from;
    copy.srcDevice = const_cast<void *>(from);
    copy.srcPitch = 8;
    copy.dstMemoryType = to_type;
    copy.dstHost = to;
    copy.dstDevice = to;
    copy.dstPitch = 10;
    copy.WidthInBytes = 5;
    copy.Height = 4;
    return copy;
}
template <typename Copy> static void copies_driver_rows(Copy copy_rows)
{
    Device<unsigned char> d(100, 0);
    std::vector<unsigned char> host(64), back(100, 0);
    for (size_t i = 0; i < 64; i++)
        host[i] = (unsigned char)(i + 1);
    hip_Memcpy2D copy = driver_rows(host.data(), hipMemoryTypeHost, d.at, hipMemoryTypeDevice);
    copy.srcXInBytes = 1;
    copy.dstY = 2;
    CHECK(copy_rows(&copy));
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpy(back.data(), d, 100, hipMemcpyDeviceToHost));
    for (size_t y = 0; y < 10; y++)
        for (size_t x = 0; x < 10; x++)
            EQUAL(x < 5 && y >= 2 && y < 6 ? int((y - 2) * 8 + x + 2) : 0, int(back[y * 10 + x]));
    std::vector<unsigned char> again(100, 0);
    copy = driver_rows(d.at, hipMemoryTypeDevice, again.data(), hipMemoryTypeHost);
    copy.srcPitch = 10;
    copy.srcY = 2;
    CHECK(copy_rows(&copy));
    CHECK(hipDeviceSynchronize());
    EQUAL(2, int(again[0]));
    EQUAL(30, int(again[34]));
}
CASE(driver_rows) { copies_driver_rows([](const hip_Memcpy2D *copy) { return hipMemcpyParam2D(copy); }); }
CASE(driver_rows_async) { copies_driver_rows([](const hip_Memcpy2D *copy) { return hipMemcpyParam2DAsync(copy, nullptr); }); }
CASE(driver_rows_unaligned) { copies_driver_rows([](const hip_Memcpy2D *copy) { return hipDrvMemcpy2DUnaligned(copy); }); }
CASE(driver_rows_refuse)
{
    Device<unsigned char> d(100, 0);
    std::vector<unsigned char> host(64);
    hip_Memcpy2D good = driver_rows(host.data(), hipMemoryTypeHost, d.at, hipMemoryTypeDevice), copy = good;
    copy.srcHost = nullptr;
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&copy));
    copy = good, copy.dstDevice = hipDeviceptr_t(nullptr);
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&copy));
    copy = good, copy.WidthInBytes = 11;
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&copy));
    copy = good, copy.Height = 11;
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&copy));
    copy = good, copy.WidthInBytes = 0;
    CHECK(hipMemcpyParam2D(&copy));
    REQUIRE(d.all_are(0));
}
template <typename Copy> static void copies_driver_boxes(Copy copy_boxes)
{
    Device<unsigned char> d(64, 0), e(64, 0);
    std::vector<unsigned char> host(64), back(64, 0);
    for (size_t i = 0; i < 64; i++)
        host[i] = (unsigned char)(i + 1);
    HIP_MEMCPY3D copy = {};
    copy.srcMemoryType = hipMemoryTypeHost;
    copy.srcHost = host.data();
    copy.srcPitch = copy.dstPitch = 8;
    copy.srcHeight = copy.dstHeight = 4;
    copy.dstMemoryType = hipMemoryTypeDevice;
    copy.dstDevice = d.at;
    copy.WidthInBytes = 8;
    copy.Height = 4;
    copy.Depth = 2;
    CHECK(copy_boxes(&copy));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.host() == host);
    HIP_MEMCPY3D inner = copy;
    inner.srcMemoryType = hipMemoryTypeDevice;
    inner.srcDevice = d.at;
    inner.dstDevice = e.at;
    inner.srcXInBytes = 1;
    inner.dstZ = 1;
    inner.WidthInBytes = 2;
    inner.Height = inner.Depth = 1;
    CHECK(copy_boxes(&inner));
    HIP_MEMCPY3D out = copy;
    out.srcMemoryType = hipMemoryTypeDevice;
    out.srcDevice = e.at;
    out.dstMemoryType = hipMemoryTypeHost;
    out.dstHost = back.data();
    CHECK(copy_boxes(&out));
    CHECK(hipDeviceSynchronize());
    for (size_t i = 0; i < 64; i++)
        EQUAL(i == 32 ? 2 : i == 33 ? 3 : 0, int(back[i]));
}
CASE(driver_boxes) { copies_driver_boxes([](const HIP_MEMCPY3D *copy) { return hipDrvMemcpy3D(copy); }); }
CASE(driver_boxes_async) { copies_driver_boxes([](const HIP_MEMCPY3D *copy) { return hipDrvMemcpy3DAsync(copy, nullptr); }); }
CASE(driver_boxes_refuse)
{
    GIVES(hipErrorInvalidValue, hipDrvMemcpy3D(nullptr));
    GIVES(hipErrorInvalidValue, hipDrvMemcpy3DAsync(nullptr, nullptr));
    HIP_MEMCPY3D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = hipMemoryTypeDevice;
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 8;
    copy.Height = copy.Depth = copy.srcHeight = copy.dstHeight = 1;
    GIVES(hipErrorInvalidValue, hipDrvMemcpy3D(&copy));
}
CASE(variables)
{
    int ones[64], twos[64], back[64] = {};
    for (int i = 0; i < 64; i++)
        ones[i] = i, twos[i] = 1000 * i;
    Device<int> d(64, 0);
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(variable), ones, sizeof ones));
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(constant), twos, sizeof twos));
    read_variable<<<1, 64>>>(d);
    std::vector<int> result = d.host();
    for (int i = 0; i < 64; i++)
        EQUAL(1001 * i, result[size_t(i)]);
    CHECK(hipMemcpyFromSymbol(back, HIP_SYMBOL(variable), 4, 60));
    EQUAL(15, back[0]);
    int value = 77;
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(variable), &value, 4, 8));
    CHECK(hipMemcpyFromSymbol(back, HIP_SYMBOL(variable), sizeof back));
    EQUAL(77, back[2]);
    EQUAL(3, back[3]);
}
CASE(variables_refuse_directions)
{
    int host[64];
    const void *symbol = HIP_SYMBOL(variable);
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyToSymbol(symbol, host, 4, 0, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyToSymbol(symbol, host, 4, 0, hipMemcpyHostToHost));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyToSymbol(symbol, host, 4, 0, hipMemcpyKind(-1)));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyToSymbolAsync(symbol, host, 4, 0, hipMemcpyDeviceToHost, nullptr));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyFromSymbol(host, symbol, 4, 0, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyFromSymbol(host, symbol, 4, 0, hipMemcpyHostToHost));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyFromSymbol(host, symbol, 4, 0, hipMemcpyKind(-1)));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpyFromSymbolAsync(host, symbol, 4, 0, hipMemcpyHostToDevice, nullptr));
}
CASE(variables_refuse_places)
{
    int host[65];
    const void *symbol = HIP_SYMBOL(variable);
    GIVES(hipErrorInvalidSymbol, hipMemcpyToSymbol(nullptr, host, 4));
    GIVES(hipErrorInvalidSymbol, hipMemcpyToSymbol(host, host, 4));
    GIVES(hipErrorInvalidSymbol, hipMemcpyFromSymbol(host, nullptr, 4));
    GIVES(hipErrorInvalidSymbol, hipMemcpyFromSymbolAsync(host, host, 4, 0, hipMemcpyDeviceToHost, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyToSymbol(symbol, nullptr, 4));
    GIVES(hipErrorInvalidValue, hipMemcpyFromSymbol(nullptr, symbol, 4));
    GIVES(hipErrorInvalidValue, hipMemcpyToSymbol(symbol, host, sizeof host));
    GIVES(hipErrorInvalidValue, hipMemcpyToSymbol(symbol, host, 4, 256));
    GIVES(hipErrorInvalidValue, hipMemcpyFromSymbol(host, symbol, sizeof host));
    GIVES(hipErrorInvalidValue, hipMemcpyFromSymbol(host, symbol, 256, 4));
}
CASE(variables_have_address_and_size)
{
    void *at = nullptr;
    size_t bytes = 0;
    int host;
    CHECK(hipGetSymbolAddress(&at, HIP_SYMBOL(variable)));
    REQUIRE(at != nullptr);
    CHECK(hipGetSymbolSize(&bytes, HIP_SYMBOL(variable)));
    EQUAL(256u, bytes);
    GIVES(hipErrorInvalidValue, hipGetSymbolAddress(nullptr, HIP_SYMBOL(variable)));
    GIVES(hipErrorInvalidValue, hipGetSymbolSize(nullptr, HIP_SYMBOL(variable)));
    GIVES(hipErrorInvalidSymbol, hipGetSymbolAddress(&at, &host));
    GIVES(hipErrorInvalidSymbol, hipGetSymbolSize(&bytes, nullptr));
}
CASE(peers_refuse)
{
    Device<int> a(64, 1), b(64, 2);
    GIVES(hipErrorInvalidDevice, hipMemcpyPeer(a, 1, b, 0, 4));
    GIVES(hipErrorInvalidDevice, hipMemcpyPeer(a, 0, b, -1, 4));
    GIVES(hipErrorInvalidDevice, hipMemcpyPeerAsync(a, 0, b, 9, 4, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyPeer(nullptr, 0, b, 0, 4));
    GIVES(hipErrorInvalidValue, hipMemcpyPeer(a, 0, nullptr, 0, 4));
    GIVES(hipErrorInvalidValue, hipMemcpyPeer(a, 0, b, 0, 257));
    CHECK(hipMemcpyPeer(a, 0, b, 0, 0));
    CHECK(hipMemcpyPeer(a, 0, b, 0, 256));
    REQUIRE(a.all_are(2));
}
#if HIP_VERSION_MAJOR >= 7
CASE(batch)
{
    Device<int> a(16, 1), b(16, 2), c(16, 0), d(16, 0);
    void *to[] = {c.at, d.at}, *from[] = {a.at, b.at};
    size_t sizes[] = {64, 64}, failed = 7, zeros[] = {64, 0};
    CHECK(hipMemcpyBatchAsync(to, from, sizes, 2, nullptr, nullptr, 0, &failed, nullptr));
    CHECK(hipStreamSynchronize(nullptr));
    REQUIRE(c.all_are(1) && d.all_are(2));
    EQUAL(HUGE, failed);
    GIVES(hipErrorInvalidValue, hipMemcpyBatchAsync(nullptr, from, sizes, 2, nullptr, nullptr, 0, &failed, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyBatchAsync(to, nullptr, sizes, 2, nullptr, nullptr, 0, &failed, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyBatchAsync(to, from, nullptr, 2, nullptr, nullptr, 0, &failed, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyBatchAsync(to, from, sizes, 0, nullptr, nullptr, 0, &failed, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyBatchAsync(to, from, zeros, 2, nullptr, nullptr, 0, &failed, nullptr));
    EQUAL(1u, failed);
}
CASE(box_between_peers)
{
    Device<int> a(16, 1), b(16, 0);
    hipMemcpy3DPeerParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(a.at, 64, 64, 1);
    copy.dstPtr = make_hipPitchedPtr(b.at, 64, 64, 1);
    copy.extent = make_hipExtent(64, 1, 1);
    CHECK(hipMemcpy3DPeer(&copy));
    CHECK(hipDeviceSynchronize());
    REQUIRE(b.all_are(1));
    GIVES(hipErrorInvalidValue, hipMemcpy3DPeer(nullptr));
    copy.dstDevice = 5;
    GIVES(hipErrorInvalidDevice, hipMemcpy3DPeer(&copy));
}
#endif
