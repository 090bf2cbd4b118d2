// Memory of the program's own that it registers: kernels work on it in place, also where ranges share a page.
#include <hip/hip_runtime.h>
#include <cstring>
#include <memory>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include "check.h"

__global__ void scale(int *data, int n, int factor)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] *= factor;
}

template <typename T> static T *on_device(T *host)
{
    void *address;
    CHECK(hipHostGetDevicePointer(&address, host, 0));
    return static_cast<T *>(address);
}

static void neighbours()
{
    const int n = 300, count = 6;
    std::unique_ptr<int[]> parts[count];
    for (auto &part : parts) {
        part.reset(new int[n]);
        for (int i = 0; i < n; i++)
            part[i] = i;
    }
    for (auto &part : parts)
        CHECK(hipHostRegister(part.get(), n * sizeof(int), hipHostRegisterMapped));
    for (int k = 0; k < count; k++)
        scale<<<2, 256>>>(on_device(parts[k].get()), n, k + 1);
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostUnregister(parts[2].get()));
    parts[2][7] = -1; // the program's own again; its neighbours are not
    scale<<<2, 256>>>(on_device(parts[3].get()), n, 10);
    CHECK(hipDeviceSynchronize());
    for (int k = 0; k < count; k++)
        for (int i = 0; i < n; i++)
            REQUIRE(parts[k][i] == (k == 2 && i == 7 ? -1 : i * (k + 1) * (k == 3 ? 10 : 1)));
    for (int k = 0; k < count; k++)
        REQUIRE(hipHostUnregister(parts[k].get()) == (k == 2 ? hipErrorHostMemoryNotRegistered : hipSuccess));
    (void)hipGetLastError();
}

static void large()
{
    const int n = 1 << 20;
    std::vector<int> data(n);
    for (int i = 0; i < n; i++)
        data[i] = i;
    CHECK(hipHostRegister(data.data(), n * sizeof(int), hipHostRegisterDefault));
    int *device = on_device(data.data());
    REQUIRE(on_device(data.data() + 100) == device + 100);
    scale<<<2, 256>>>(device + n - 512, 512, 3);
    CHECK(hipDeviceSynchronize());
    REQUIRE(data[n - 1] == 3 * (n - 1) && data[5] == 5);
    data[n - 1] = 11; // both sides see what either writes
    scale<<<1, 1>>>(device + n - 1, 1, 2);
    CHECK(hipDeviceSynchronize());
    REQUIRE(data[n - 1] == 22);
    int other = 0;
    CHECK(hipMemcpy(&other, device + n - 1, sizeof other, hipMemcpyDeviceToHost));
    CHECK(hipMemcpy(data.data() + 1, &other, sizeof other, hipMemcpyDefault));
    REQUIRE(data[1] == 22);
    hipPointerAttribute_t attributes;
    CHECK(hipPointerGetAttributes(&attributes, data.data() + 8));
    REQUIRE(attributes.devicePointer == device + 8 && attributes.hostPointer == data.data() + 8);
    unsigned flags = 7;
    CHECK(hipHostGetFlags(&flags, data.data()));
    REQUIRE(flags == hipHostRegisterDefault);
    pid_t child = fork(); // whose memory is a copy, as always
    if (child == 0) {
        data[2] = -1;
        _exit(data[1] == 22 ? 0 : 1);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0 && data[2] == 2);
    REQUIRE(hipHostRegister(data.data() + 10, 4, 0) == hipErrorHostMemoryAlreadyRegistered);
    CHECK(hipHostUnregister(data.data()));
    REQUIRE(data[1] == 22 && data[n - 2] == 3 * (n - 2) && data[n - 1] == 22);
    void *none;
    REQUIRE(hipHostGetDevicePointer(&none, data.data(), 0) == hipErrorInvalidValue);
    CHECK(hipHostRegister(data.data(), n * sizeof(int), hipHostRegisterDefault));
    REQUIRE(data[n - 2] == 3 * (n - 2));
    CHECK(hipHostUnregister(data.data()));
    (void)hipGetLastError();
}

int main()
{
    neighbours();
    large();
    int *device;
    CHECK(hipMalloc(&device, 64));
    REQUIRE(hipHostRegister(device, 64, 0) == hipErrorHostMemoryAlreadyRegistered);
    REQUIRE(hipHostRegister(nullptr, 64, 0) == hipErrorInvalidValue);
    void *shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(hipHostRegister(shared, 4096, 0) == hipErrorInvalidValue); // it must stay shared
    REQUIRE(munmap(shared, 4096) == 0);
    REQUIRE(hipHostRegister(shared, 4096, 0) == hipErrorInvalidValue);
    REQUIRE(hipHostUnregister(shared) == hipErrorHostMemoryNotRegistered);
    CHECK(hipFree(device));
    return passed();
}
