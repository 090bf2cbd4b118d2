// Arrays that are freed when a case ends.
#pragma once
#include "resources.h"

struct Array {
    hipArray_t handle = nullptr;
    Array(hipChannelFormatDesc desc, size_t width, size_t height = 0, size_t depth = 0, unsigned flags = hipArrayDefault)
    {
        CHECK(hipMalloc3DArray(&handle, &desc, make_hipExtent(width, height, depth), flags));
    }
    ~Array() { (void)hipFreeArray(handle); }
    Array(const Array &) = delete;
    operator hipArray_t() const { return handle; }
};

inline hipChannelFormatDesc ints() { return hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindSigned); }

inline std::vector<int> counted(size_t count, int from = 0)
{
    std::vector<int> all(count);
    for (int &value : all)
        value = from++;
    return all;
}
