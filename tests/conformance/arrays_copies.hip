// Copies to, from and between arrays: what they move, which places they refuse, on streams and in graphs.
#include "array.h"

constexpr size_t HUGE = ~size_t(0);
constexpr size_t ROW = 8 * sizeof(int);

// A full array of 8 columns, and its content.
static void fill(hipArray_t array, const std::vector<int> &values)
{
    CHECK(hipMemcpy2DToArray(array, 0, 0, values.data(), ROW, ROW, values.size() / 8, hipMemcpyHostToDevice));
}
static std::vector<int> content(hipArray_t array, size_t rows)
{
    std::vector<int> values(8 * rows, -1);
    CHECK(hipMemcpy2DFromArray(values.data(), ROW, array, 0, 0, ROW, rows, hipMemcpyDeviceToHost));
    return values;
}

CASE(rows_there_and_back)
{
    Array array(ints(), 8, 4);
    fill(array, counted(32));
    REQUIRE(content(array, 4) == counted(32));
}
CASE(rows_inside)
{
    Array array(ints(), 8, 4);
    fill(array, std::vector<int>(32, 0));
    std::vector<int> part = counted(6, 1), back(20, -1);
    CHECK(hipMemcpy2DToArray(array, 8, 1, part.data(), 12, 12, 2, hipMemcpyHostToDevice));
    std::vector<int> all = content(array, 4);
    for (int i = 0; i < 32; i++) {
        int x = i % 8 - 2, y = i / 8 - 1;
        EQUAL(x >= 0 && x < 3 && y >= 0 && y < 2 ? y * 3 + x + 1 : 0, all[size_t(i)]);
    }
    CHECK(hipMemcpy2DFromArray(back.data(), 40, array, 12, 1, 8, 2, hipMemcpyDeviceToHost));
    REQUIRE(back[0] == 2 && back[1] == 3 && back[2] == -1 && back[10] == 5 && back[11] == 6);
}
CASE(rows_of_device_memory)
{
    Array array(ints(), 8, 4);
    Device<int> d(64), e(64, 0);
    CHECK(hipMemcpy(d, counted(64).data(), 256, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2DToArray(array, 0, 0, d, 64, ROW, 4, hipMemcpyDeviceToDevice));
    CHECK(hipMemcpy2DFromArray(e, 48, array, 0, 0, ROW, 4, hipMemcpyDefault));
    CHECK(hipDeviceSynchronize());
    EQUAL(16, e.host()[12]);
    EQUAL(0, e.host()[8]);
}
CASE(one_dimension_has_one_row)
{
    Array array(ints(), 8);
    std::vector<int> values = counted(16);
    CHECK(hipMemcpy2DToArray(array, 0, 0, values.data(), ROW, ROW, 1, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 0, 0, values.data(), ROW, ROW, 2, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 0, 1, values.data(), ROW, ROW, 1, hipMemcpyHostToDevice));
    REQUIRE(content(array, 1) == counted(8));
}
CASE(rows_refuse)
{
    Array array(ints(), 8, 4);
    fill(array, counted(32));
    std::vector<int> host(64, 9);
    void *at = host.data();
    hipMemcpyKind to = hipMemcpyHostToDevice, from = hipMemcpyDeviceToHost;
    GIVES(hipErrorInvalidHandle, hipMemcpy2DToArray(nullptr, 0, 0, at, ROW, ROW, 4, to));
    GIVES(hipErrorInvalidHandle, hipMemcpy2DFromArray(at, ROW, nullptr, 0, 0, ROW, 4, from));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 0, 0, nullptr, ROW, ROW, 4, to));
    GIVES(hipErrorInvalidValue, hipMemcpy2DFromArray(nullptr, ROW, array, 0, 0, ROW, 4, from));
    GIVES(hipErrorInvalidPitchValue, hipMemcpy2DToArray(array, 0, 0, at, ROW - 1, ROW, 4, to));
    GIVES(hipErrorInvalidPitchValue, hipMemcpy2DFromArray(at, 0, array, 0, 0, ROW, 4, from));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy2DToArray(array, 0, 0, at, ROW, ROW, 4, hipMemcpyKind(-1)));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy2DFromArrayAsync(at, ROW, array, 0, 0, ROW, 4, hipMemcpyKind(9), nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 1, 0, at, ROW, ROW, 4, to));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 0, 1, at, ROW, ROW, 4, to));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 0, 0, at, 2 * ROW, ROW + 1, 1, to));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 0, 0, at, ROW, ROW, 5, to));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, HUGE, 0, at, ROW, ROW, 1, to));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 8, HUGE, at, ROW, 8, 4, to));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 0, 0, at, HUGE, HUGE, 1, to));
    GIVES(hipErrorInvalidValue, hipMemcpy2DFromArray(at, ROW, array, 0, 0, ROW, HUGE, from));
    GIVES(hipErrorInvalidValue, hipMemcpy2DFromArray(at, ROW, array, 4, 4, 4, 1, from));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(array, 0, 0, at, ROW, ROW, 4, hipMemcpyDeviceToDevice));
    CHECK(hipMemcpy2DToArray(array, 0, 0, at, ROW, 0, 4, to));
    CHECK(hipMemcpy2DToArray(array, 0, 0, at, ROW, ROW, 0, to));
    REQUIRE(content(array, 4) == counted(32) && host == std::vector<int>(64, 9));
}
CASE(lines_of_the_first_row)
{
    Array array(ints(), 8, 2), other(ints(), 8, 2);
    Device<int> d(8, 7);
    fill(array, counted(16));
    fill(other, std::vector<int>(16, 0));
    int host[8] = {};
    CHECK(hipMemcpyAtoH(host, array, 8, 12));
    REQUIRE(host[0] == 2 && host[2] == 4 && host[3] == 0);
    host[0] = 50;
    CHECK(hipMemcpyHtoA(array, 4, host, 4));
    EQUAL(50, content(array, 2)[1]);
    CHECK(hipMemcpyAtoA(other, 4, array, 0, 12));
    CHECK(hipMemcpyDtoA(other, 16, d.at, 8));
    CHECK(hipMemcpyAtoD(d.at, other, 4, 8));
    CHECK(hipDeviceSynchronize());
    REQUIRE((content(other, 2) == std::vector<int>{0, 0, 50, 2, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    REQUIRE(d.host()[0] == 0 && d.host()[1] == 50 && d.host()[2] == 7);
}
CASE(lines_refuse)
{
    Array array(ints(), 8, 2);
    Device<int> d(4, 1);
    int host[32] = {};
    GIVES(hipErrorInvalidValue, hipMemcpyAtoH(nullptr, array, 0, ROW));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoH(host, nullptr, 0, ROW));
    GIVES(hipErrorInvalidValue, hipMemcpyHtoA(nullptr, 0, host, ROW));
    GIVES(hipErrorInvalidValue, hipMemcpyHtoA(array, 0, nullptr, ROW));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoH(host, array, 0, ROW + 1));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoH(host, array, ROW + 10, ROW));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoH(host, array, 0, 2 * ROW));
    GIVES(hipErrorInvalidValue, hipMemcpyHtoA(array, HUGE, host, 4));
    GIVES(hipErrorInvalidValue, hipMemcpyHtoA(array, 4, host, HUGE));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoD(d.at, array, 0, ROW));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoD(host, array, 0, 4));
    GIVES(hipErrorInvalidValue, hipMemcpyDtoA(array, 0, host, 4));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoA(array, 0, nullptr, 0, 4));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoA(array, 4, array, 0, ROW));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoHAsync(host, nullptr, 0, 4, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpyHtoAAsync(array, ROW, host, 4, nullptr));
    CHECK(hipMemcpyAtoH(host, array, 0, 0));
}
CASE(between_arrays)
{
    Array array(ints(), 8, 4), other(ints(), 8, 4);
    fill(array, counted(32));
    fill(other, std::vector<int>(32, -1));
    CHECK(hipMemcpy2DArrayToArray(other, 0, 1, array, 16, 0, 16, 2, hipMemcpyDeviceToDevice));
    std::vector<int> all = content(other, 4);
    for (int i = 0; i < 32; i++) {
        int x = i % 8, y = i / 8 - 1;
        EQUAL(x < 4 && y >= 0 && y < 2 ? y * 8 + x + 4 : -1, all[size_t(i)]);
    }
    GIVES(hipErrorInvalidHandle, hipMemcpy2DArrayToArray(nullptr, 0, 0, array, 0, 0, 4, 1, hipMemcpyDeviceToDevice));
    GIVES(hipErrorInvalidHandle, hipMemcpy2DArrayToArray(other, 0, 0, nullptr, 0, 0, 4, 1, hipMemcpyDeviceToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2DArrayToArray(other, 0, 3, array, 0, 0, 4, 2, hipMemcpyDeviceToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy2DArrayToArray(other, 0, 0, array, 4, 0, ROW, 1, hipMemcpyDeviceToDevice));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 4, 1, hipMemcpyKind(-1)));
}
CASE(runs_over_rows)
{
    Array array(ints(), 8, 4);
    fill(array, std::vector<int>(32, 0));
    std::vector<int> values = counted(12, 1), back(12, 0);
    CHECK(hipMemcpyToArray(array, 16, 1, values.data(), 48, hipMemcpyHostToDevice));
    std::vector<int> all = content(array, 4);
    for (int i = 0; i < 32; i++)
        EQUAL(i >= 12 && i < 24 ? i - 11 : 0, all[size_t(i)]);
    CHECK(hipMemcpyFromArray(back.data(), array, 16, 1, 48, hipMemcpyDeviceToHost));
    REQUIRE(back == values);
    GIVES(hipErrorInvalidValue, hipMemcpyToArray(array, 0, 3, values.data(), ROW + 1, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpyToArray(array, ROW, 0, values.data(), 4, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpyToArray(array, 0, 4, values.data(), 4, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpyToArray(array, 0, 0, values.data(), HUGE, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpyToArray(nullptr, 0, 0, values.data(), 4, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpyFromArray(nullptr, array, 0, 0, 4, hipMemcpyDeviceToHost));
}
static hipMemcpy3DParms box_of(hipArray_t array, void *memory, bool to)
{
    hipMemcpy3DParms copy = {};
    hipPitchedPtr place = make_hipPitchedPtr(memory, ROW, ROW, 4);
    if (to)
        copy.dstArray = array, copy.srcPtr = place, copy.kind = hipMemcpyHostToDevice;
    else
        copy.srcArray = array, copy.dstPtr = place, copy.kind = hipMemcpyDeviceToHost;
    copy.extent = make_hipExtent(8, 4, 2); // in elements
    return copy;
}
CASE(boxes)
{
    Array array(ints(), 8, 4, 2), other(ints(), 8, 4, 2);
    std::vector<int> values = counted(64), back(64, -1);
    hipMemcpy3DParms copy = box_of(array, values.data(), true);
    CHECK(hipMemcpy3D(&copy));
    copy.dstArray = other;
    copy.srcPos = make_hipPos(4, 0, 0); // bytes of memory
    copy.dstPos = make_hipPos(2, 1, 1); // elements of the array
    copy.extent = make_hipExtent(3, 2, 1);
    CHECK(hipMemcpy3D(&copy));
    hipMemcpy3DParms inner = {};
    inner.srcArray = array, inner.dstArray = other;
    inner.srcPos = make_hipPos(7, 3, 1), inner.dstPos = make_hipPos(0, 0, 0);
    inner.extent = make_hipExtent(1, 1, 1);
    inner.kind = hipMemcpyDeviceToDevice;
    CHECK(hipMemcpy3D(&inner));
    copy = box_of(other, back.data(), false);
    CHECK(hipMemcpy3D(&copy));
    EQUAL(63, back[0]);
    EQUAL(1, back[32 + 8 + 2]);
    EQUAL(3, back[32 + 8 + 4]);
    EQUAL(9, back[32 + 16 + 2]);
    copy = box_of(array, back.data(), false);
    CHECK(hipMemcpy3DAsync(&copy, nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(back == values);
}
CASE(boxes_refuse)
{
    Array array(ints(), 8, 4, 2), bytes(hipCreateChannelDesc(8, 0, 0, 0, hipChannelFormatKindUnsigned), 8, 4, 2);
    std::vector<int> values(64);
    hipMemcpy3DParms good = box_of(array, values.data(), true), copy = good;
    copy.dstPtr = good.srcPtr;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.dstArray = nullptr;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.srcArray = bytes, copy.srcPtr = {};
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.dstPos.x = 1;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.dstPos.z = 1;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.extent.width = size_t(1) << 62;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.dstPos.x = size_t(1) << 62;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.extent.depth = 3;
    GIVES(hipErrorInvalidValue, hipMemcpy3D(&copy));
    copy = good, copy.kind = hipMemcpyKind(-1);
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy3D(&copy));
    copy = good, copy.extent.height = 0;
    CHECK(hipMemcpy3D(&copy));
}
CASE(layers_of_rows_and_of_lines)
{
    Array lines(ints(), 8, 0, 4, hipArrayLayered);
    std::vector<int> values = counted(32), back(32, -1);
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(values.data(), ROW, ROW, 1);
    copy.dstArray = lines;
    copy.extent = make_hipExtent(8, 1, 4);
    copy.kind = hipMemcpyHostToDevice;
    CHECK(hipMemcpy3D(&copy));
    copy = {};
    copy.srcArray = lines;
    copy.srcPos = make_hipPos(0, 0, 2);
    copy.dstPtr = make_hipPitchedPtr(back.data(), ROW, ROW, 1);
    copy.extent = make_hipExtent(8, 1, 1);
    copy.kind = hipMemcpyDeviceToHost;
    CHECK(hipMemcpy3D(&copy));
    EQUAL(16, back[0]);
    EQUAL(23, back[7]);
    EQUAL(-1, back[8]);
}
CASE(the_drivers_forms)
{
    Array array(ints(), 8, 4), deep(ints(), 8, 4, 2);
    std::vector<int> values = counted(64), back(64, -1);
    hip_Memcpy2D rows = {};
    rows.srcMemoryType = hipMemoryTypeHost, rows.srcHost = values.data(), rows.srcPitch = ROW;
    rows.dstMemoryType = hipMemoryTypeArray, rows.dstArray = array;
    rows.WidthInBytes = ROW, rows.Height = 4;
    CHECK(hipMemcpyParam2D(&rows));
    REQUIRE(content(array, 4) == counted(32));
    rows.dstXInBytes = 4;
    GIVES(hipErrorInvalidValue, hipMemcpyParam2D(&rows));
    rows.dstXInBytes = 0, rows.dstArray = nullptr;
    GIVES(hipErrorInvalidValue, hipMemcpyParam2DAsync(&rows, nullptr));
    HIP_MEMCPY3D box = {};
    box.srcMemoryType = hipMemoryTypeUnified, box.srcDevice = values.data(), box.srcPitch = ROW, box.srcHeight = 4;
    box.dstMemoryType = hipMemoryTypeArray, box.dstArray = deep;
    box.WidthInBytes = ROW, box.Height = 4, box.Depth = 2;
    CHECK(hipDrvMemcpy3D(&box));
    HIP_MEMCPY3D out = {};
    out.srcMemoryType = hipMemoryTypeArray, out.srcArray = deep, out.srcZ = 1, out.srcY = 1, out.srcXInBytes = 8;
    out.dstMemoryType = hipMemoryTypeHost, out.dstHost = back.data();
    out.WidthInBytes = 8, out.Height = 2, out.Depth = 1;
    CHECK(hipDrvMemcpy3DAsync(&out, nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(back[0] == 42 && back[1] == 43 && back[2] == 50 && back[3] == 51 && back[4] == -1);
    out.dstMemoryType = hipMemoryType(77);
    GIVES(hipErrorInvalidValue, hipDrvMemcpy3D(&out));
}
CASE(asynchronous_copies_return)
{
    Stream s;
    Array array(ints(), 8, 4);
    Pinned<int> p(32, 5);
    Device<int> d(32, 6);
    returns_while_held(s, [&] { return hipMemcpy2DToArrayAsync(array, 0, 0, p, ROW, ROW, 4, hipMemcpyHostToDevice, s); });
    REQUIRE(content(array, 4) == std::vector<int>(32, 5));
    returns_while_held(s, [&] { return hipMemcpyHtoAAsync(array, 0, p, 8, s); });
    returns_while_held(s, [&] { return hipMemcpy2DToArrayAsync(array, 0, 1, d, ROW, ROW, 1, hipMemcpyDeviceToDevice, s); });
    returns_while_held(s, [&] { return hipMemcpy2DFromArrayAsync(p, ROW, array, 0, 0, ROW, 4, hipMemcpyDeviceToHost, s); });
    REQUIRE(p[7] == 5 && p[8] == 6 && p[15] == 6 && p[16] == 5);
    returns_while_held(s, [&] { return hipMemcpyAtoHAsync(p, array, 0, 8, s); });
}
CASE(freeing_waits)
{
    Stream s;
    hipArray_t array;
    hipChannelFormatDesc desc = ints();
    CHECK(hipMallocArray(&array, &desc, 8, 4, 0));
    Pinned<int> p(32, 5), q(32, 0);
    Gate gate;
    gate.hold(s);
    CHECK(hipMemcpy2DToArrayAsync(array, 0, 0, p, ROW, ROW, 4, hipMemcpyHostToDevice, s));
    CHECK(hipMemcpy2DFromArrayAsync(q, ROW, array, 0, 0, ROW, 4, hipMemcpyDeviceToHost, s));
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    hipError_t error = hipFreeArray(array);
    opener.join();
    CHECK(error);
    REQUIRE(q.all_are(5));
}
CASE(captured)
{
    Stream s;
    Array array(ints(), 8, 4);
    Pinned<int> p(32, 5), q(32, 0);
    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
    CHECK(hipMemcpy2DToArrayAsync(array, 8, 1, p, ROW, 8, 2, hipMemcpyHostToDevice, s));
    CHECK(hipMemcpy2DFromArrayAsync(q, ROW, array, 0, 0, ROW, 4, hipMemcpyDeviceToHost, s));
    CHECK(hipStreamEndCapture(s, &graph));
    hipGraphNode_t root;
    size_t count = 1;
    CHECK(hipGraphGetRootNodes(graph, &root, &count));
    hipMemcpy3DParms params = {};
    CHECK(hipGraphMemcpyNodeGetParams(root, &params));
    REQUIRE(params.dstArray == array.handle && params.dstPtr.ptr == nullptr && params.srcPtr.ptr == p.at);
    REQUIRE(params.dstPos.x == 2 && params.dstPos.y == 1 && params.dstPos.z == 0);
    REQUIRE(params.extent.width == 2 && params.extent.height == 2 && params.extent.depth == 1);
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    fill(array, std::vector<int>(32, 1));
    CHECK(hipGraphLaunch(executable, s));
    CHECK(hipStreamSynchronize(s));
    for (int i = 0; i < 32; i++)
        EQUAL(i % 8 >= 2 && i % 8 < 4 && i / 8 >= 1 && i / 8 < 3 ? 5 : 1, q[i]);
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphDestroy(graph));
}
CASE(a_node_that_copies_to_an_array)
{
    Stream s;
    Array array(ints(), 8, 4, 2);
    std::vector<int> values = counted(64), back(64, -1);
    hipMemcpy3DParms copy = box_of(array, values.data(), true);
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipGraphNode_t node;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(executable, s));
    CHECK(hipStreamSynchronize(s));
    copy = box_of(array, back.data(), false);
    CHECK(hipMemcpy3D(&copy));
    REQUIRE(back == values);
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphDestroy(graph));
}
CASE(streams_of_threads)
{
    Array array(ints(), 8, 4);
    std::vector<int> values = counted(32), back(32, -1);
    CHECK(hipMemcpy2DToArray_spt(array, 0, 0, values.data(), ROW, ROW, 4, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2DFromArray_spt(back.data(), ROW, array, 0, 0, ROW, 4, hipMemcpyDeviceToHost));
    REQUIRE(back == values);
    back.assign(32, -1);
    CHECK(hipMemcpyFromArray_spt(back.data(), array, 0, 0, 128, hipMemcpyDeviceToHost));
    REQUIRE(back == values);
    back.assign(32, -1);
    CHECK(hipMemcpy2DFromArrayAsync_spt(back.data(), ROW, array, 0, 0, ROW, 4, hipMemcpyDeviceToHost, nullptr));
    CHECK(hipStreamSynchronize(hipStreamPerThread));
    REQUIRE(back == values);
}
#if HIP_VERSION_MAJOR >= 7
CASE(boxes_between_peers)
{
    Array array(ints(), 8, 4, 2);
    Device<int> d(64), e(64, 0);
    CHECK(hipMemcpy(d, counted(64).data(), 256, hipMemcpyHostToDevice));
    hipMemcpy3DPeerParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(d.at, ROW, ROW, 4);
    copy.dstArray = array;
    copy.extent = make_hipExtent(8, 4, 2);
    CHECK(hipMemcpy3DPeer(&copy));
    hipMemcpy3DPeerParms out = {};
    out.srcArray = array;
    out.dstPtr = make_hipPitchedPtr(e.at, ROW, ROW, 4);
    out.extent = make_hipExtent(8, 4, 2);
    CHECK(hipMemcpy3DPeerAsync(&out, nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(e.host() == counted(64));
    out.srcDevice = -1;
    GIVES(hipErrorInvalidDevice, hipMemcpy3DPeerAsync(&out, nullptr));
}
CASE(batches_of_boxes)
{
    Array array(ints(), 8, 4, 2);
    std::vector<int> values = counted(64), back(64, -1);
    hipMemcpy3DBatchOp boxes[2] = {};
    boxes[0].src.type = boxes[1].dst.type = hipMemcpyOperandTypePointer;
    boxes[0].dst.type = boxes[1].src.type = hipMemcpyOperandTypeArray;
    boxes[0].src.op.ptr.ptr = values.data();
    boxes[0].src.op.ptr.rowLength = 8; // in elements
    boxes[0].src.op.ptr.layerHeight = 4;
    boxes[0].dst.op.array.array = boxes[1].src.op.array.array = array;
    boxes[0].extent = make_hipExtent(8, 4, 2);
    boxes[1].dst.op.ptr.ptr = back.data();
    boxes[1].src.op.array.offset = {2, 1, 1};
    boxes[1].extent = make_hipExtent(2, 2, 1);
    size_t failed = 7;
    CHECK(hipMemcpy3DBatchAsync(2, boxes, &failed, 0, nullptr));
    CHECK(hipDeviceSynchronize());
    EQUAL(HUGE, failed);
    REQUIRE(back[0] == 42 && back[1] == 43 && back[2] == 50 && back[3] == 51 && back[4] == -1);
    boxes[1].extent.width = 9;
    GIVES(hipErrorInvalidValue, hipMemcpy3DBatchAsync(2, boxes, &failed, 0, nullptr));
    EQUAL(1u, failed);
    GIVES(hipErrorInvalidValue, hipMemcpy3DBatchAsync(0, boxes, &failed, 0, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpy3DBatchAsync(2, nullptr, &failed, 0, nullptr));
    GIVES(hipErrorInvalidValue, hipMemcpy3DBatchAsync(2, boxes, &failed, 1, nullptr));
}
#endif
