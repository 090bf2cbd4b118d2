// What HIP's headers expect of the device library for work-item ids, so that programs need no device bitcode.
// Included after hip/hip_runtime.h, for device code only.
#pragma once
#ifndef __managed__
#define __managed__ __attribute__((managed))
#endif
#ifdef __HIP_DEVICE_COMPILE__
#define LUTHIER_ID(name, x, y, z)                                                                     \
    extern "C" __device__ inline __attribute__((const, used)) size_t name(unsigned axis)              \
    {                                                                                                 \
        return axis == 0 ? x : axis == 1 ? y : z;                                                     \
    }
LUTHIER_ID(__ockl_get_local_id, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
LUTHIER_ID(__ockl_get_group_id, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
LUTHIER_ID(__ockl_get_local_size, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z())
LUTHIER_ID(__ockl_get_num_groups, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
           __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
           __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())
#if HIP_VERSION_MAJOR < 6
LUTHIER_ID(__ockl_get_global_size, __builtin_amdgcn_grid_size_x(), __builtin_amdgcn_grid_size_y(), __builtin_amdgcn_grid_size_z())
#endif
#if HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR == 2 // whose headers leave fences to the device library, too
extern "C" __device__ inline __attribute__((used)) void __atomic_work_item_fence(
    __cl_mem_fence_flags, __memory_order order, __memory_scope scope)
{
#define LUTHIER_FENCE(order, scope) __builtin_amdgcn_fence(order, scope)
#define LUTHIER_SCOPES(order)                                                                         \
    (scope == __memory_scope_work_group ? LUTHIER_FENCE(order, "workgroup")                            \
        : scope == __memory_scope_device ? LUTHIER_FENCE(order, "agent") : LUTHIER_FENCE(order, ""))
    order == __memory_order_acquire ? LUTHIER_SCOPES(__ATOMIC_ACQUIRE)
        : order == __memory_order_release ? LUTHIER_SCOPES(__ATOMIC_RELEASE) : LUTHIER_SCOPES(__ATOMIC_SEQ_CST);
}
#undef LUTHIER_SCOPES
#undef LUTHIER_FENCE
#endif
#undef LUTHIER_ID
#endif
