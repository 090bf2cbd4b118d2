// The little of HIP that the samples need, so that a bare clang compiles them: no ROCm, no SDK.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
// Keeps a loop a loop, so that the sample stays short.
#define ROLLED _Pragma("clang loop unroll(disable)")
#define KERNEL extern "C" __global__

typedef unsigned int u32;

// Work-item and work-group positions; block sizes come from the hidden kernel arguments, as in HIP.
__device__ inline u32 thread_x() { return __builtin_amdgcn_workitem_id_x(); }
__device__ inline u32 thread_y() { return __builtin_amdgcn_workitem_id_y(); }
__device__ inline u32 group_x() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline u32 group_y() { return __builtin_amdgcn_workgroup_id_y(); }
__device__ inline u32 block_x() { return __builtin_amdgcn_workgroup_size_x(); }
__device__ inline u32 block_y() { return __builtin_amdgcn_workgroup_size_y(); }
__device__ inline u32 global_x() { return group_x() * block_x() + thread_x(); }
__device__ inline u32 global_y() { return group_y() * block_y() + thread_y(); }

// HIP's __syncthreads().
__device__ inline void sync_threads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

__device__ inline u32 atomic_add(u32 *address, u32 value) {
  return __hip_atomic_fetch_add(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__device__ inline u32 atomic_add_shared(u32 *address, u32 value) {
  return __hip_atomic_fetch_add(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
