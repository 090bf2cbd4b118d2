// What programs survive: argv[1] is `kernel` for a bad address in a kernel, `constant` for a write to what is
// read-only, `fork` and `early` for a
// child of fork after and before HIP is used, `loop` for a program that is killed while a kernel runs, `endless` for a
// kernel that a time limit ends, `barrier` for one whose waves wait for each other, `signal` for one that waits for us, `interrupted` for one that still does when we end.
#include <hip/hip_runtime.h>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

__constant__ int fixed = 7;

__global__ void store(int *to) { *to = 1; }

__global__ void address(const int **of) { *of = &fixed; }

__global__ void forever(volatile int *flag)
{
    while (*flag == 0)
        __builtin_amdgcn_s_sleep(1);
}

__global__ void never(volatile int *flag) // wave 1 waits for what wave 0 writes behind the barrier
{
    if (threadIdx.x < 64) {
        __syncthreads();
        *flag = 1;
    } else
        while (*flag == 0)
            ;
}

__global__ void answered(volatile int *flag)
{
    flag[1] = 1;
    while (*flag == 0)
        ;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "none";
    int *memory, count;
    if (std::strcmp(what, "early") == 0) { // fork before HIP is used: the child has its own device
        pid_t child = fork();
        CHECK(hipMalloc(&memory, 4));
        store<<<1, 1>>>(memory);
        CHECK(hipDeviceSynchronize());
        int status = 0;
        REQUIRE(child == 0 || (waitpid(child, &status, 0) == child && status == 0));
        return child ? passed() : 0;
    }
    CHECK(hipMalloc(&memory, 4));
    CHECK(hipMemset(memory, 0, 4));
    if (std::strcmp(what, "kernel") == 0) {
        store<<<1, 1>>>(nullptr);
        REQUIRE(hipDeviceSynchronize() == hipErrorIllegalAddress);
        REQUIRE(hipMemcpy(&count, memory, 4, hipMemcpyDeviceToHost) == hipErrorIllegalAddress);
    } else if (std::strcmp(what, "constant") == 0) {
        const int **place, *to;
        CHECK(hipMalloc(&place, sizeof to));
        address<<<1, 1>>>(place);
        CHECK(hipMemcpy(&to, place, sizeof to, hipMemcpyDeviceToHost));
        store<<<1, 1>>>(const_cast<int *>(to));
        REQUIRE(hipDeviceSynchronize() == hipErrorIllegalAddress);
    } else if (std::strcmp(what, "fork") == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(hipGetDeviceCount(&count) == hipErrorNotInitialized ? 0 : 1);
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
        CHECK(hipDeviceSynchronize());
        REQUIRE(waitpid(-1, &status, WNOHANG) == -1); // the worker is no child of the program
    } else if (std::strcmp(what, "endless") == 0) {
        forever<<<1, 1>>>(memory);
        REQUIRE(hipDeviceSynchronize() == hipErrorLaunchTimeOut);
        REQUIRE(hipMemcpy(&count, memory, 4, hipMemcpyDeviceToHost) == hipErrorLaunchTimeOut);
    } else if (std::strcmp(what, "barrier") == 0) {
        never<<<1, 128>>>(memory);
        REQUIRE(hipDeviceSynchronize() == hipErrorLaunchTimeOut);
    } else if (std::strcmp(what, "signal") == 0 || std::strcmp(what, "interrupted") == 0) {
        int *shared;
        CHECK(hipHostMalloc((void **)&shared, 8, 0));
        volatile int *flag = shared;
        flag[0] = flag[1] = 0;
        answered<<<1, 1>>>(shared);
        while (flag[1] == 0)
            ;
        if (std::strcmp(what, "interrupted") == 0)
            raise(SIGINT);
        flag[0] = 1;
        CHECK(hipDeviceSynchronize());
    } else if (std::strcmp(what, "loop") == 0) {
        forever<<<1, 1>>>(memory);
        std::printf("running\n");
        std::fflush(stdout);
        raise(SIGKILL);
    } else {
        store<<<1, 1>>>(memory);
        CHECK(hipMemcpy(&count, memory, 4, hipMemcpyDeviceToHost));
        REQUIRE(count == 1);
    }
    return passed();
}
