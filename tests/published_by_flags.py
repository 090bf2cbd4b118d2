"""Kernels in which a work-group publishes data by a flag, and another one reads it: with an acquire behind the load
that saw the flag, and without one."""

from __future__ import annotations

import subprocess

from compiled_samples import OPTIONS

HEAD = """
#define X __builtin_amdgcn_workitem_id_x()
#define G __builtin_amdgcn_workgroup_id_x()
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE __HIP_MEMORY_SCOPE_AGENT
#define FENCE(order, scope) __builtin_amdgcn_fence(order, scope)
#define MEET FENCE(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE, "workgroup")
#define SEES(order) __hip_atomic_load(&a[1], order, DEVICE)
typedef unsigned u32;
"""
PUT = "a[0] = 9; __hip_atomic_store(&a[1], 1u, __ATOMIC_RELEASE, DEVICE);"
ONE = f"if (X) return; if (G == 0) {{ {PUT} return; }} "
ALL = f"__attribute__((shared)) static u32 s; if (G == 0) {{ if (X == 0) {{ {PUT} }} return; }} "
WITHOUT = {
    "relaxed": ONE + "if (SEES(__ATOMIC_RELAXED)) b[G] = a[0];",
    "volatile_flag": ONE + "if (*(volatile u32 *)&a[1]) b[G] = a[0];",
    "atomic": ONE + "if (__hip_atomic_fetch_add(&a[1], 0u, __ATOMIC_RELAXED, DEVICE)) b[G] = a[0];",
    "fence_of_a_group": ONE + 'if (SEES(__ATOMIC_RELAXED)) { FENCE(__ATOMIC_ACQUIRE, "workgroup"); b[G] = a[0]; }',
    "release_alone": ONE + 'if (SEES(__ATOMIC_RELAXED)) { FENCE(__ATOMIC_RELEASE, "agent"); b[G] = a[0]; }',
    "barrier_alone": ALL + "if (X == 0) s = SEES(__ATOMIC_RELAXED); MEET; if (s) b[G] = a[0];",
}  # fmt: skip
WITH = {
    "acquire": ONE + "if (SEES(__ATOMIC_ACQUIRE)) b[G] = a[0];",
    "sequential": ONE + "if (SEES(__ATOMIC_SEQ_CST)) b[G] = a[0];",
    "fence": ONE + 'if (SEES(__ATOMIC_RELAXED)) { FENCE(__ATOMIC_ACQUIRE, "agent"); b[G] = a[0]; }',
    "fence_of_the_system": ONE + 'if (SEES(__ATOMIC_RELAXED)) { FENCE(__ATOMIC_ACQUIRE, ""); b[G] = a[0]; }',
    "threadfence": ONE + 'if (*(volatile u32 *)&a[1]) { FENCE(__ATOMIC_SEQ_CST, "agent"); b[G] = a[0]; }',
    "one_for_all": ALL + "if (X == 0) s = SEES(__ATOMIC_ACQUIRE); MEET; if (s) b[G] = a[0];",
    "each_for_itself": ALL + "if (X == 0) s = SEES(__ATOMIC_RELAXED); MEET; if (s) { FENCE(__ATOMIC_ACQUIRE, "
                             '"agent"); b[G] = a[0]; }',
    "data_are_atomic": ONE + "if (SEES(__ATOMIC_RELAXED)) b[G] = __hip_atomic_load(&a[0], __ATOMIC_RELAXED, DEVICE);",
    "stores": ONE + "if (SEES(__ATOMIC_RELAXED)) a[0] = G;",
    "in_one_group": f"if (G) return; if (X == 0) {{ {PUT} }} if (X == 128 && SEES(__ATOMIC_RELAXED)) b[G] = a[0];",
    "lock": "if (X) return; while (__hip_atomic_exchange(&a[1], 1u, __ATOMIC_ACQUIRE, DEVICE)); a[0] = a[0] + G; "
            "__hip_atomic_store(&a[1], 0u, __ATOMIC_RELEASE, DEVICE);",
}  # fmt: skip
KERNELS = {**WITHOUT, **WITH}
TOO_EARLY = "too_early"  # the flag is set before the data are there
TEXTS = {**KERNELS, TOO_EARLY: WITH["acquire"].replace("RELEASE", "RELAXED")}


def compiled(clang, target, folder):
    """A code object that has all of them."""
    text = [HEAD, *(f"KERNEL {kernel}(u32 *a, u32 *b) {{ {body} }}" for kernel, body in TEXTS.items())]
    (folder / "k.hip").write_text("\n".join(text))
    subprocess.run([clang, *OPTIONS, "-O1", "-gline-tables-only", f"--offload-arch={target}", "k.hip", "-o", "k.co"],
                   cwd=folder, check=True)
    return (folder / "k.co").read_bytes()
