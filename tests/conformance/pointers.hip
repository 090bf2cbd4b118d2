// What addresses say of themselves.
#include "resources.h"

__device__ int variable;

static hipPointerAttribute_t attributes(const void *at)
{
    hipPointerAttribute_t made;
    std::memset(&made, 0xEE, sizeof made);
    CHECK(hipPointerGetAttributes(&made, at));
    return made;
}
template <typename T> static T one(hipPointer_attribute attribute, const void *at)
{
    T value = {};
    CHECK(hipPointerGetAttribute(&value, attribute, hipDeviceptr_t(const_cast<void *>(at))));
    return value;
}
static hipError_t asked(hipPointer_attribute attribute, const void *at)
{
    uint64_t room[4];
    return hipPointerGetAttribute(room, attribute, hipDeviceptr_t(const_cast<void *>(at)));
}

CASE(device_memory)
{
    Device<int> d(64);
    hipPointerAttribute_t a = attributes(d.at + 3);
#if HIP_VERSION_MAJOR >= 6
    EQUAL(hipMemoryTypeDevice, a.type);
#endif
    EQUAL(0, a.device);
    REQUIRE(a.devicePointer == d.at + 3);
    REQUIRE(a.hostPointer == nullptr);
    EQUAL(0, a.isManaged);
    EQUAL(0u, a.allocationFlags);
}
CASE(pinned_memory)
{
    Pinned<int> p(64, 0, hipHostMallocPortable);
    hipPointerAttribute_t a = attributes(p.at + 3);
#if HIP_VERSION_MAJOR >= 6
    EQUAL(hipMemoryTypeHost, a.type);
#endif
    REQUIRE(a.devicePointer == p.at + 3 && a.hostPointer == p.at + 3);
    EQUAL(0, a.isManaged);
    EQUAL(unsigned(hipHostMallocPortable), a.allocationFlags);
}
CASE(managed_memory)
{
    Managed<int> m(64);
    hipPointerAttribute_t a = attributes(m.at + 3);
#if HIP_VERSION_MAJOR >= 6
    EQUAL(hipMemoryTypeManaged, a.type);
#endif
    EQUAL(1, a.isManaged);
    REQUIRE(a.devicePointer == m.at + 3 && a.hostPointer == m.at + 3);
}
CASE(registered_memory)
{
    std::vector<int> host(2048);
    CHECK(hipHostRegister(host.data(), 8192, hipHostRegisterMapped));
    hipPointerAttribute_t a = attributes(host.data() + 3);
    void *device;
    CHECK(hipHostGetDevicePointer(&device, host.data() + 3, 0));
#if HIP_VERSION_MAJOR >= 6
    EQUAL(hipMemoryTypeHost, a.type);
#endif
    REQUIRE(a.hostPointer == host.data() + 3);
    REQUIRE(a.devicePointer == device);
    EQUAL(unsigned(hipHostRegisterMapped), a.allocationFlags);
    CHECK(hipHostUnregister(host.data()));
}
#if HIP_VERSION_MAJOR >= 6
CASE(foreign_memory)
{
    int host;
    hipPointerAttribute_t a = attributes(&host);
    EQUAL(hipMemoryTypeUnregistered, a.type);
    EQUAL(hipInvalidDeviceId, a.device);
    REQUIRE(a.devicePointer == nullptr && a.hostPointer == nullptr);
    EQUAL(0, a.isManaged);
    CHECK(hipPointerGetAttributes(&a, nullptr));
    EQUAL(hipMemoryTypeUnregistered, a.type);
}
#endif
CASE(attributes_need_a_place)
{
    Device<int> d(64);
    GIVES(hipErrorInvalidValue, hipPointerGetAttributes(nullptr, d));
    GIVES(hipErrorInvalidValue, hipPointerGetAttribute(nullptr, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, d.at));
    GIVES(hipErrorInvalidValue, asked(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, nullptr));
    GIVES(hipErrorInvalidValue, asked(hipPointer_attribute(0), d));
    GIVES(hipErrorInvalidValue, asked(hipPointer_attribute(999), d));
}
CASE(one_attribute_of_device_memory)
{
    Device<int> d(64);
    EQUAL(unsigned(hipMemoryTypeDevice), one<unsigned>(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
    REQUIRE(one<void *>(HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, d.at + 3) == d.at + 3);
    GIVES(hipErrorInvalidValue, asked(HIP_POINTER_ATTRIBUTE_HOST_POINTER, d));
    EQUAL(0, one<int>(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, d));
    REQUIRE(one<void *>(HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, d.at + 3) == d.at);
    EQUAL(256u, one<unsigned>(HIP_POINTER_ATTRIBUTE_RANGE_SIZE, d.at + 3));
    EQUAL(1, int(one<bool>(HIP_POINTER_ATTRIBUTE_MAPPED, d)));
    EQUAL(0, int(one<bool>(HIP_POINTER_ATTRIBUTE_IS_MANAGED, d)));
}
CASE(one_attribute_of_host_memory)
{
    Pinned<int> p(64);
    EQUAL(unsigned(hipMemoryTypeHost), one<unsigned>(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    REQUIRE(one<void *>(HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, p.at + 3) == p.at + 3);
    REQUIRE(one<void *>(HIP_POINTER_ATTRIBUTE_HOST_POINTER, p.at + 3) == p.at + 3);
    REQUIRE(one<void *>(HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, p.at + 3) == p.at);
    EQUAL(256u, one<unsigned>(HIP_POINTER_ATTRIBUTE_RANGE_SIZE, p));
    EQUAL(1, int(one<bool>(HIP_POINTER_ATTRIBUTE_MAPPED, p)));
}
CASE(one_attribute_of_managed_memory)
{
    Managed<int> m(64);
    EQUAL(1, int(one<bool>(HIP_POINTER_ATTRIBUTE_IS_MANAGED, m)));
    REQUIRE(one<void *>(HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, m) == m.at);
}
CASE(one_attribute_of_foreign_memory)
{
    int host;
    for (hipPointer_attribute attribute :
         {HIP_POINTER_ATTRIBUTE_CONTEXT, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER,
          HIP_POINTER_ATTRIBUTE_HOST_POINTER, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, HIP_POINTER_ATTRIBUTE_BUFFER_ID,
          HIP_POINTER_ATTRIBUTE_IS_MANAGED, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR,
          HIP_POINTER_ATTRIBUTE_RANGE_SIZE, HIP_POINTER_ATTRIBUTE_MAPPED})
        GIVES(hipErrorInvalidValue, asked(attribute, &host));
}
CASE(buffers_have_ids_of_their_own)
{
    Device<int> a(64), b(64);
    unsigned first = one<unsigned>(HIP_POINTER_ATTRIBUTE_BUFFER_ID, a);
    EQUAL(first, one<unsigned>(HIP_POINTER_ATTRIBUTE_BUFFER_ID, a.at + 9));
    REQUIRE(first != one<unsigned>(HIP_POINTER_ATTRIBUTE_BUFFER_ID, b));
}
CASE(unsupported_attributes)
{
    Device<int> d(64);
    for (hipPointer_attribute attribute :
         {HIP_POINTER_ATTRIBUTE_P2P_TOKENS, HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE,
          HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,
          HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE})
        GIVES(hipErrorNotSupported, asked(attribute, d));
}
CASE(several_attributes)
{
    Device<int> d(64);
    unsigned type = 99, size = 99;
    void *start = nullptr;
    void *places[] = {&type, &size, &start};
    hipPointer_attribute names[] = {HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, HIP_POINTER_ATTRIBUTE_RANGE_SIZE,
                                    HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR};
    CHECK(hipDrvPointerGetAttributes(3, names, places, hipDeviceptr_t(d.at + 5)));
    EQUAL(unsigned(hipMemoryTypeDevice), type);
    EQUAL(256u, size);
    REQUIRE(start == d.at);
    int host;
    CHECK(hipDrvPointerGetAttributes(3, names, places, reinterpret_cast<hipDeviceptr_t>(&host)));
    EQUAL(0u, type);
    EQUAL(0u, size);
    REQUIRE(start == nullptr);
    GIVES(hipErrorInvalidValue, hipDrvPointerGetAttributes(0, names, places, d.at));
    GIVES(hipErrorInvalidValue, hipDrvPointerGetAttributes(3, nullptr, places, d.at));
    GIVES(hipErrorInvalidValue, hipDrvPointerGetAttributes(3, names, nullptr, d.at));
    GIVES(hipErrorInvalidValue, hipDrvPointerGetAttributes(3, names, places, hipDeviceptr_t(nullptr)));
}
#if HIP_VERSION_MAJOR >= 6
CASE(synchronous_operations_can_be_set)
{
    Device<int> d(64);
    unsigned on = 1, odd = 2;
    int host;
    EQUAL(0, int(one<bool>(HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, d)));
    CHECK(hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, d.at));
    EQUAL(1, int(one<bool>(HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, d)));
    GIVES(hipErrorInvalidValue, hipPointerSetAttribute(&odd, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, d.at));
    GIVES(hipErrorInvalidValue, hipPointerSetAttribute(nullptr, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, d.at));
    GIVES(hipErrorInvalidValue, hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, hipDeviceptr_t(nullptr)));
    GIVES(hipErrorInvalidValue, hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, d.at));
    GIVES(hipErrorInvalidDevicePointer,
          hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<hipDeviceptr_t>(&host)));
}
#endif
CASE(variables_are_device_memory)
{
    void *at;
    CHECK(hipGetSymbolAddress(&at, HIP_SYMBOL(variable)));
    hipPointerAttribute_t a = attributes(at);
    REQUIRE(a.devicePointer == at);
}
