// Two processes share memory: of the device by a handle (hipIpcGetMemHandle), of the host by a file that both register.
#include <hip/hip_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"

constexpr int COUNT = 1 << 20;

__global__ void add(int *to, int value) { to[blockIdx.x * blockDim.x + threadIdx.x] += value; }

static int *registered(int file)
{
    void *host = mmap(nullptr, COUNT * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(host != MAP_FAILED);
    CHECK(hipHostRegister(host, COUNT * sizeof(int), hipHostRegisterMapped));
    return static_cast<int *>(host);
}

static void add_to(int *host, int value)
{
    int *device;
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), host, 0));
    add<<<COUNT / 256, 256>>>(device, value);
    CHECK(hipDeviceSynchronize());
}

static void other(int from, int back, int file)
{
    hipIpcMemHandle_t handle;
    int *shared, first[2];
    REQUIRE(read(from, &handle, sizeof handle) == sizeof handle);
    CHECK(hipIpcOpenMemHandle(reinterpret_cast<void **>(&shared), handle, hipIpcMemLazyEnablePeerAccess));
    CHECK(hipMemcpy(first, shared, sizeof first, hipMemcpyDeviceToHost));
    REQUIRE(first[0] == 5 && first[1] == 5);
    add<<<COUNT / 256, 256>>>(shared, 37);
    CHECK(hipDeviceSynchronize());
    CHECK(hipIpcCloseMemHandle(shared));
    int *host = registered(file);
    REQUIRE(host[0] == 1000 && host[COUNT - 1] == 1000);
    add_to(host, 337);
    CHECK(hipHostUnregister(host));
    REQUIRE(write(back, "x", 1) == 1);
}

// Two registrations that share a page, of memory that is this process's alone.
static void register_neighbours()
{
    char *pages = static_cast<char *>(aligned_alloc(4096, 2 * 4096));
    CHECK(hipHostRegister(pages, 2048, 0));
    CHECK(hipHostRegister(pages + 2048, 4096, 0));
    CHECK(hipHostUnregister(pages));
    CHECK(hipHostUnregister(pages + 2048));
    free(pages);
}

int main(int argc, char **argv)
{
    int to[2], back[2], *device, found[2], file = open(argc > 1 ? argv[1] : "", O_RDWR | O_CREAT | O_TRUNC, 0600), status;
    char done;
    REQUIRE(file >= 0 && ftruncate(file, COUNT * sizeof(int)) == 0 && pipe(to) == 0 && pipe(back) == 0);
    pid_t child = fork();
    if (child == 0) {
        other(to[0], back[1], file);
        return 0;
    }
    REQUIRE(close(to[0]) == 0 && close(back[1]) == 0); // so that a child that fails ends the wait for it
    hipIpcMemHandle_t handle;
    register_neighbours();
    CHECK(hipMalloc(&device, COUNT * sizeof(int)));
    CHECK(hipMemset(device, 0, COUNT * sizeof(int)));
    add<<<COUNT / 256, 256>>>(device, 5);
    int *host = registered(file);
    add_to(host, 1000);
    CHECK(hipIpcGetMemHandle(&handle, device));
    REQUIRE(write(to[1], &handle, sizeof handle) == sizeof handle && read(back[0], &done, 1) == 1);
    CHECK(hipMemcpy(found, device + COUNT - 2, sizeof found, hipMemcpyDeviceToHost));
    REQUIRE(found[0] == 42 && found[1] == 42);
    REQUIRE(host[0] == 1337 && host[COUNT - 1] == 1337);
    CHECK(hipHostUnregister(host));
    REQUIRE(host[0] == 1337);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    return passed();
}
