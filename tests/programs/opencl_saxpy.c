/* A program on OpenCL: kernels of a code object, launched in whole and in partial work-groups, and with LDS by argument.
 *
 *     opencl_saxpy OPENCL_SAXPY.co
 *
 * The last line is PASSED.
 */
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 1000, BLOCK = 64, LARGEST = 1 << 20 };

#define CHECK(status)                                          \
    do {                                                       \
        cl_int check_status = (status);                        \
        if (check_status != CL_SUCCESS) {                      \
            printf("%d: error %d\n", __LINE__, check_status);  \
            exit(1);                                           \
        }                                                      \
    } while (0)

/* A whole file. */
static unsigned char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    unsigned char *data = malloc(LARGEST);
    if (!file || !data) {
        printf("cannot read %s\n", path);
        exit(1);
    }
    *bytes = fread(data, 1, LARGEST, file);
    fclose(file);
    return data;
}

static void expect(const float *found, const float *wanted, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (found[i] != wanted[i]) {
            printf("%s[%d] is %g and not %g\n", name, i, found[i], wanted[i]);
            exit(1);
        }
}

int main(int words, char **word)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    char name[128];
    CHECK(clGetPlatformIDs(1, &platform, NULL));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL));
    CHECK(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL));
    printf("%s\n", name);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status);
    cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &status);
    CHECK(status);
    size_t bytes = 0;
    const unsigned char *code = read_file(words > 1 ? word[1] : "", &bytes);
    cl_int taken;
    cl_program program = clCreateProgramWithBinary(context, 1, &device, &bytes, &code, &taken, &status);
    CHECK(status);
    CHECK(taken);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    float x[ITEMS], y[ITEMS], wanted[ITEMS], found[ITEMS], parts[ITEMS / BLOCK] = {0};
    for (int i = 0; i < ITEMS; i++) {
        x[i] = (float)i, y[i] = (float)(i % 7), wanted[i] = 2 * x[i] + y[i];
        if (i / BLOCK < ITEMS / BLOCK)
            parts[i / BLOCK] += x[i];
    }
    cl_mem xs = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof x, x, &status);
    CHECK(status);
    cl_mem ys = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof y, NULL, &status);
    CHECK(status);
    cl_kernel saxpy = clCreateKernel(program, "saxpy", &status);
    CHECK(status);
    cl_kernel sums = clCreateKernel(program, "sums", &status);
    CHECK(status);
    cl_uint count = ITEMS;
    float factor = 2;
    size_t whole = (ITEMS + BLOCK - 1) / BLOCK * BLOCK, partial = ITEMS, block = BLOCK;
    size_t groups = ITEMS / BLOCK, some = groups * BLOCK;
    CHECK(clSetKernelArg(saxpy, 0, sizeof count, &count));
    CHECK(clSetKernelArg(saxpy, 1, sizeof factor, &factor));
    CHECK(clSetKernelArg(saxpy, 2, sizeof xs, &xs));
    CHECK(clSetKernelArg(saxpy, 3, sizeof ys, &ys));
    for (int launch = 0; launch < 2; launch++) { /* of OpenCL 1.2, whose groups are whole; and of any size */
        CHECK(clEnqueueWriteBuffer(queue, ys, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL));
        cl_event event;
        cl_ulong begin, end;
        CHECK(clEnqueueNDRangeKernel(queue, saxpy, 1, NULL, launch ? &partial : &whole, launch ? NULL : &block, 0, NULL, &event));
        CHECK(clEnqueueReadBuffer(queue, ys, CL_TRUE, 0, sizeof found, found, 1, &event, NULL));
        expect(found, wanted, ITEMS, "y");
        CHECK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL));
        CHECK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
        if (end <= begin) {
            printf("a kernel ends at %llu, and begins at %llu\n", (unsigned long long)end, (unsigned long long)begin);
            return 1;
        }
        CHECK(clReleaseEvent(event));
    }
    CHECK(clSetKernelArg(sums, 0, sizeof xs, &xs));
    CHECK(clSetKernelArg(sums, 1, sizeof ys, &ys));
    CHECK(clSetKernelArg(sums, 2, BLOCK * sizeof(float), NULL));
    CHECK(clEnqueueNDRangeKernel(queue, sums, 1, NULL, &some, &block, 0, NULL, NULL));
    CHECK(clEnqueueReadBuffer(queue, ys, CL_TRUE, 0, groups * sizeof(float), found, 0, NULL, NULL));
    expect(found, parts, (int)groups, "sums");
    CHECK(clReleaseKernel(saxpy));
    CHECK(clReleaseKernel(sums));
    CHECK(clReleaseProgram(program));
    CHECK(clReleaseMemObject(xs));
    CHECK(clReleaseMemObject(ys));
    CHECK(clReleaseCommandQueue(queue));
    CHECK(clReleaseContext(context));
    printf("PASSED\n");
    return 0;
}
