"""Clang's builtins in hooks: those that ask for what a kernel alone has are refused by name, others go in."""

from __future__ import annotations

import re

import pytest

from luthier_py.base.errors import Unsupported
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.jit import PayloadKey, compile_keys
from luthier_py.rewrite.tool import Hook, Hooks

pytestmark = pytest.mark.usefixtures("clang")

REFUSED = {
    "workitem_id_y()": 'pass workitem_id("x") (or "y", "z") to it as an argument',
    "workgroup_id_x()": 'pass workgroup_id("x")',
    "workgroup_size_x()": 'workgroup_size("x"), grid_size("x")',
    "grid_size_x()": 'grid_size("x") or DISPATCH_PTR',
    "implicitarg_ptr() == nullptr": "kernel_argument(...)",
    "kernarg_segment_ptr() == nullptr": "KERNARG_PTR",
    "dispatch_ptr() == nullptr": "DISPATCH_PTR",
    "queue_ptr() == nullptr": "pass QUEUE_PTR",
    "s_setreg(2049, 3), 1": "@hook(mode=...)",
    "s_barrier(), 1": "cannot wait for other waves",
    "s_sendmsg(1, 0), 1": "neither computes, nor takes values of lanes",
    "s_setprio(3), 1": "neither computes",
    "s_getpc() > 0": "neither computes",
    "mfma_f32_4x4x1f32(1.f, 1.f, Row{}, 0, 0, 0)[0] > 0": "matrix instructions take what all lanes have",
    "ds_gws_init(1, 2), 1": "neither computes",
    "endpgm(), 1": "cannot end the wave",
}
OTHERS = {
    "return_address(0) == nullptr": "llvm.returnaddress",
    "trap(), 1": "llvm.trap in asked (",
    "debugtrap(), 1": "llvm.debugtrap",
    "set_flt_rounds(1), 1": "llvm.set.rounding",
}
COMPUTING = """\
    f32 f = f32(x); f64 d = f64(x); u64 big = u64(x) * 5; u32 n = x;
    o[0] = __builtin_bitreverse32(x) + __builtin_clz(x | 1) + __builtin_popcountll(big) + __builtin_rotateleft32(x, 3);
    o[1] = u32(__builtin_fmaf(f, f, 1) + __builtin_floorf(f) + __builtin_sqrtf(f) + __builtin_fabsf(f));
    o[2] = u32(__builtin_amdgcn_rcpf(f) + __builtin_amdgcn_fractf(f) + __builtin_amdgcn_sinf(f));
    o[9] = u32(__builtin_amdgcn_rsq(d));
    o[3] = __builtin_amdgcn_ubfe(x, 3, 5) + __builtin_amdgcn_perm(x, x, 0x01020304) + __builtin_amdgcn_sad_u8(x, x, 1);
    o[4] = __builtin_amdgcn_ds_bpermute(4 * x, x) + __builtin_amdgcn_ds_swizzle(x, 7);
    o[5] = __builtin_amdgcn_mov_dpp(n, 1, 15, 15, true) + __builtin_amdgcn_update_dpp(n, n, 1, 15, 15, true);
    u32 sum; o[6] = __builtin_add_overflow(u32(x), 5u, &sum) + __builtin_mul_overflow(sum, 3u, &sum);
    o[7] = sum + u32(__builtin_readcyclecounter());
    o[8] = __builtin_amdgcn_class(d, 3) + __builtin_isnan(f) + __builtin_amdgcn_s_getreg(0xf804);
    __builtin_memcpy(o + 16, o + 32, 64); __builtin_assume(n < 64); __builtin_amdgcn_s_sleep(3);
"""


def made(lines: str, of: str = "asked") -> Hook:
    text = f"""
#include <luthier/hooks.h>
using namespace luthier;
typedef float Row __attribute__((ext_vector_type(4)));
__device__ inline u32 own_id() {{
    return __builtin_amdgcn_workitem_id_x();
}}
LUTHIER_HOOK() void asked(u32 *o, lane<u32> x) {{
    {lines}
}}
LUTHIER_HOOK() void without(u32 *o, lane<u32> x) {{ o[x] = 1; }}
"""
    found: Hook = Hooks.from_hip(text)[of]
    return found


def compiled(one: Hook, name: str = "gfx90a", wave_size: int = 64) -> None:
    key = PayloadKey(one, (None,) * len(one.signature.parameters))
    compile_keys({key: None}, instruction_set(target(name), wave_size))


@pytest.mark.parametrize(("called", "words"), [*((f"__builtin_amdgcn_{call}", why) for call, why in REFUSED.items()),
                                               *((f"__builtin_{call}", why) for call, why in OTHERS.items())])
def test_what_a_kernel_alone_has_is_refused_by_name(called: str, words: str) -> None:
    with pytest.raises(Unsupported, match=re.escape(words)) as refused:
        compiled(made(f"o[0] = ({called});"))
    where = r"hook asked calls llvm\.\S+ in asked \(\S*test_computing_calls\.py:\d+ \(text\):9\)"
    assert re.search(where, refused.value.message)


def test_arrays_of_a_length_that_is_not_known_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="give arrays a length that is known when the hook is compiled"):
        compiled(made("u32 a[x + 1]; a[x] = 1; a[0] = 2; o[0] = a[x];"))


def test_functions_that_hooks_call_are_named_by_their_lines() -> None:
    with pytest.raises(Unsupported, match=r"hook asked calls llvm.amdgcn.workitem.id.x in own_id \(.*\(text\):6\)"):
        compiled(made("if (x > 3) { o[x] = own_id(); }"))
    compiled(made("o[x] = own_id();", "without"))


@pytest.mark.parametrize(("name", "wave_size"), [("gfx90a", 64), ("gfx1100", 32)])
def test_what_computes_goes_in(name: str, wave_size: int) -> None:
    compiled(made(COMPUTING), name, wave_size)
