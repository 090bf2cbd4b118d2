// What is set of a stream: its compute units, how threads wait for it.
#include "resources.h"

static unsigned units()
{
    int count = 0;
    CHECK(hipDeviceGetAttribute(&count, hipDeviceAttributeMultiprocessorCount, 0));
    return unsigned(count);
}
static std::vector<uint32_t> all_units()
{
    std::vector<uint32_t> mask((units() + 31) / 32, ~0u);
    if (units() % 32)
        mask.back() = (1u << units() % 32) - 1;
    return mask;
}
static std::vector<uint32_t> mask_of(hipStream_t s)
{
    std::vector<uint32_t> mask(all_units().size());
    CHECK(hipExtStreamGetCUMask(s, uint32_t(mask.size()), mask.data()));
    return mask;
}
struct Masked {
    hipStream_t handle = nullptr;
    explicit Masked(const std::vector<uint32_t> &mask) { CHECK(hipExtStreamCreateWithCUMask(&handle, uint32_t(mask.size()), mask.data())); }
    ~Masked() { (void)hipStreamDestroy(handle); }
};

CASE(all_units_unless_somebody_says_so)
{
    Stream s;
    for (hipStream_t each : {static_cast<hipStream_t>(nullptr), static_cast<hipStream_t>(s), hipStreamPerThread})
        REQUIRE(mask_of(each) == all_units());
}
CASE(masks_are_kept)
{
    std::vector<uint32_t> mask = all_units();
    mask[0] = 0xe;
    REQUIRE(mask_of(Masked(mask).handle) == mask);
    REQUIRE(mask_of(Masked({0xe}).handle)[0] == 0xe);
}
CASE(units_that_are_not_there)
{
    std::vector<uint32_t> mask(all_units().size() + 2, ~0u);
    REQUIRE(mask_of(Masked(mask).handle) == all_units());
    REQUIRE(mask_of(Masked({0u}).handle) == all_units());
}
CASE(masked_streams_are_streams)
{
    Masked s({3u});
    unsigned flags = 99;
    Device<int> d(16);
    CHECK(hipStreamGetFlags(s.handle, &flags));
    EQUAL(0u, flags);
    CHECK(hipMemsetAsync(d, 0, d.bytes(), s.handle));
    CHECK(hipStreamSynchronize(s.handle));
    REQUIRE(d.all_are(0));
}
CASE(masks_refuse)
{
    hipStream_t s = nullptr;
    uint32_t mask[8] = {1};
    GIVES(hipErrorInvalidHandle, hipExtStreamCreateWithCUMask(nullptr, 1, mask));
    GIVES(hipErrorInvalidValue, hipExtStreamCreateWithCUMask(&s, 0, mask));
    GIVES(hipErrorInvalidValue, hipExtStreamCreateWithCUMask(&s, 1, nullptr));
    GIVES(hipErrorInvalidValue, hipExtStreamGetCUMask(nullptr, 8, nullptr));
    GIVES(hipErrorInvalidValue, hipExtStreamGetCUMask(nullptr, 0, mask));
    GIVES(hipErrorInvalidValue, hipExtStreamGetCUMask(nullptr, uint32_t(all_units().size()) - 1, mask));
    GIVES(hipErrorContextIsDestroyed, hipExtStreamGetCUMask(reinterpret_cast<hipStream_t>(0xFFFF), 8, mask));
}

#if HIP_VERSION >= 70100000
CASE(policy_is_kept)
{
    Stream s;
    hipStreamAttrValue value = {}, found = {};
    CHECK(hipStreamGetAttribute(s, hipStreamAttributeSynchronizationPolicy, &found));
    EQUAL(int(hipSyncPolicyAuto), int(found.syncPolicy));
    for (int policy = hipSyncPolicyAuto; policy <= hipSyncPolicyBlockingSync; policy++) {
        value.syncPolicy = hipSynchronizationPolicy(policy);
        CHECK(hipStreamSetAttribute(s, hipStreamAttributeSynchronizationPolicy, &value));
        CHECK(hipStreamGetAttribute(s, hipStreamAttributeSynchronizationPolicy, &found));
        EQUAL(policy, int(found.syncPolicy));
    }
}
CASE(attributes_refuse)
{
    Stream s;
    hipStreamAttrValue value = {};
    value.syncPolicy = hipSyncPolicyAuto;
    auto bad = reinterpret_cast<hipStream_t>(-1);
    auto none = hipStreamAttrID(-1);
    GIVES(hipErrorInvalidHandle, hipStreamSetAttribute(bad, hipStreamAttributeSynchronizationPolicy, &value));
    GIVES(hipErrorInvalidHandle, hipStreamGetAttribute(bad, hipStreamAttributeSynchronizationPolicy, &value));
    GIVES(hipErrorInvalidValue, hipStreamSetAttribute(s, none, &value));
    GIVES(hipErrorInvalidValue, hipStreamGetAttribute(s, none, &value));
    GIVES(hipErrorInvalidValue, hipStreamSetAttribute(s, hipStreamAttributeSynchronizationPolicy, nullptr));
    GIVES(hipErrorInvalidValue, hipStreamGetAttribute(s, hipStreamAttributeSynchronizationPolicy, nullptr));
    value.syncPolicy = hipSynchronizationPolicy(-1);
    GIVES(hipErrorInvalidValue, hipStreamSetAttribute(s, hipStreamAttributeSynchronizationPolicy, &value));
}
#endif
