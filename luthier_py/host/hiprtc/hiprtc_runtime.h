/* What a program for hiprtc has without including anything: HIP's device side, and nothing of the host's.
 *
 * ROCm's library carries these headers in itself, preprocessed; here those are read that are installed. Which they are
 * is what ROCm's own build says (clr, hipamd/src/hiprtc/CMakeLists.txt: HIPRTC_HEADERS); before HIP 6, hip_runtime.h
 * includes most of them itself. Tried with HIP 5.2, 6.1, 6.4 and 7.1.
 */
#pragma once
#pragma clang system_header

#ifndef __AMDGCN_WAVEFRONT_SIZE /* clang had it until 21, and headers before HIP 7 ask for it */
#if defined(__GFX8__) || defined(__GFX9__)
#define __AMDGCN_WAVEFRONT_SIZE 64
#else
#define __AMDGCN_WAVEFRONT_SIZE 32
#endif
#endif

#pragma push_macro("CHAR_BIT")
#pragma push_macro("INT_MAX")
#define CHAR_BIT __CHAR_BIT__
#define INT_MAX __INT_MAX__
#include <hip/hip_runtime.h>
#if HIP_VERSION_MAJOR >= 6
#include <hip/hip_common.h>
#include <hip/amd_detail/device_library_decls.h>
#include <hip/amd_detail/hip_assert.h>
#include <hip/library_types.h>
#include <hip/driver_types.h>
#include <hip/surface_types.h>
#include <hip/amd_detail/amd_channel_descriptor.h>
#include <hip/texture_types.h>
#include <hip/amd_detail/ockl_image.h>
#include <hip/amd_detail/texture_fetch_functions.h>
#include <hip/amd_detail/texture_indirect_functions.h>
#include <hip/amd_detail/amd_surface_functions.h>
#include <hip/amd_detail/math_fwd.h>
#if __has_include(<hip/amd_detail/amd_warp_sync_functions.h>) /* since 6.2 warp functions stand alone, and others ask for them */
#include <hip/amd_detail/amd_warp_functions.h>
#include <hip/amd_detail/amd_device_functions.h>
#include <hip/amd_detail/amd_warp_sync_functions.h>
#else /* and before it was the other way round */
#include <hip/amd_detail/amd_device_functions.h>
#include <hip/amd_detail/amd_warp_functions.h>
#endif
#include <hip/amd_detail/amd_hip_unsafe_atomics.h>
#include <hip/amd_detail/amd_hip_atomic.h>
#include <hip/amd_detail/hip_fp16_math_fwd.h>
#include <hip/amd_detail/amd_math_functions.h>
/* Those that a small installation has not. */
#if __has_include(<hip/amd_detail/amd_hip_complex.h>)
#include <hip/amd_detail/amd_hip_complex.h>
#endif
#if __has_include(<hip/amd_detail/amd_hip_math_constants.h>)
#include <hip/amd_detail/amd_hip_math_constants.h>
#endif
#if __has_include(<hip/amd_detail/amd_hip_cooperative_groups.h>)
#include <hip/amd_detail/hip_cooperative_groups_helper.h>
#include <hip/amd_detail/amd_hip_cooperative_groups.h>
#endif
#ifndef __HIP_NO_STD_DEFS__ /* what ROCm's library defines beside them (clr, HIPRTC.cmake), and its switch for it */
#if __HIPRTC_PTRDIFF_T_IS_LONG_LONG__ + 0
typedef long long ptrdiff_t;
#else
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#endif
typedef long clock_t;
namespace std {
using ::clock_t;
using ::ptrdiff_t;
}
#endif
#if __has_include(<hip/hip_fp16.h>)
#include <hip/hip_fp16.h>
#endif
#if __has_include(<hip/hip_bfloat16.h>)
#include <hip/hip_bfloat16.h>
#endif
#endif
#pragma pop_macro("CHAR_BIT")
#pragma pop_macro("INT_MAX")
