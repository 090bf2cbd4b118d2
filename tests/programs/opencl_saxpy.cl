/* Of opencl_saxpy.c; without the library of built-in functions, which would come with another package. */
#define ID (__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x())

kernel void saxpy(unsigned n, float a, global const float *x, global float *y)
{
    unsigned i = ID;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

kernel void sums(global const float *x, global float *out, local float *part)
{
    unsigned i = __builtin_amdgcn_workitem_id_x();
    part[i] = x[ID];
    for (unsigned step = __builtin_amdgcn_workgroup_size_x() / 2; step; step /= 2) {
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        if (i < step)
            part[i] += part[i + step];
    }
    if (i == 0)
        out[__builtin_amdgcn_workgroup_id_x()] = part[0];
}
