"""Hooks with a stack: local arrays that are indexed by lanes' own numbers, against NumPy, and what is around them."""

from __future__ import annotations

import numpy as np
import pytest
from shown_kernels import V, instrumented
from squeezed import crowded, marker, on, shows  # noqa: F401  (a fixture)
from stack_hooks import stack_hooks, sums

from luthier_py.base.errors import CheckFailed, Unsupported
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.inject import apply
from luthier_py.rewrite.inject.policies import Private
from luthier_py.rewrite.tool import Hooks, Variable, WaveVariable, hook, ptr, u32

UNIFORM = r"""
LUTHIER_HOOK() u32 uniform(lane<u32> x) {
    u32 seen[32];
    for (u32 k = 0; k < 32; ++k) seen[k] = x * k;
    return read_first_lane(seen[x & 31]);
}
"""


@pytest.fixture
def hooks(require_tool, monkeypatch):
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))
    return Hooks.from_hip(stack_hooks("lane_id()") + UNIFORM)


@pytest.mark.parametrize("vgprs", [64, 256])
def test_a_local_array_of_4_kb_in_a_kernel_without_a_free_register(on, hooks, vgprs):  # noqa: F811
    def visit(tool, m):
        m.before(marker(m), hooks.sorted, tool.out, V(5))
        m.after(marker(m), hooks.sorted, tool.out, V(5))

    data = crowded(vgprs, 0xFFFF0000FFFF)
    tool, made = instrumented(data, visit, out=Variable(u32, 64, name="out"))
    (function,), (kernel,) = made.patched.claim.functions, made.patched.kernels
    assert len(function.private) > 4096 and kernel.descriptor.private_segment_fixed_size == function.private.stop
    ran = on.run(made.data, "k.luthier")
    lanes = np.arange(64, dtype=np.uint64)
    active = (np.uint64(0xFFFF0000FFFF) >> lanes) & np.uint64(1)
    assert shows(ran, vgprs)
    assert list(ran[tool.out]) == list(2 * sums(lanes + np.uint64(35)) * active & np.uint64(0xFFFFFFFF))


def test_results_of_lanes_come_back(on, hooks):  # noqa: F811
    tool, made = instrumented(crowded(64, -1), lambda tool, m: m.before(marker(m), hooks.last, V(5), 3, into=V(5)))
    ran = on.run(made.data, "k.luthier")
    change = [((lane + 35) * (3 * (lane + 35) & 31) + 3) - (lane + 35) for lane in range(64)]
    assert shows(ran, 64, change=change)


@pytest.mark.parametrize("mask", [-1, 0xFF00, 0])
def test_results_for_the_wave_come_back(on, hooks, mask):  # noqa: F811
    """That of the first active lane; where none is active the hook does not run."""
    def visit(tool, m):
        m.before(marker(m), hooks.uniform, V(5), into=tool.found)
        m.before(marker(m), kept, tool.out, tool.found)

    tool, made = instrumented(crowded(64, mask), visit, out=Variable(u32, 1, name="out"), found=WaveVariable(u32))
    ran = on.run(made.data, "k.luthier")
    first = (mask & -mask).bit_length() - 1
    assert shows(ran, 64)
    assert list(ran[tool.out]) == [(first + 35) * (first + 35 & 31) if mask else 0]


@hook(lanes="one")
def kept(out: ptr[u32], found: u32) -> None:
    out[0] = found


def test_what_a_stack_cannot_do_is_said(hooks, monkeypatch, on):  # noqa: F811
    monkeypatch.setattr(apply, "private_memory", lambda program, component, frame_bytes: Private(0, "it has no room"))
    with pytest.raises(Unsupported, match="sorted needs 41.. bytes of stack, and the kernel can.*: it has no room"):
        instrumented(crowded(64, -1), lambda tool, m: m.before(marker(m), hooks.sorted, tool.out, V(5)),
                     out=Variable(u32, 64, name="out"))


def test_the_proof_refuses_a_stack_where_the_applications_memory_is(hooks, monkeypatch, on):  # noqa: F811
    def visit(tool, m):
        m.before(marker(m), hooks.last, V(5), 3, into=V(5))

    for start in (-300, 16):
        placed = apply.Calls

        def elsewhere(isa, sites, locations, fragments, frame, start=start, placed=placed):
            return placed(isa, sites, locations, fragments, frame + start)

        why = "stack in private memory that is not the tool's"
        with monkeypatch.context() as patch, pytest.raises(CheckFailed, match=why):
            patch.setattr(apply, "Calls", elsewhere)
            instrumented(crowded(64, -1), visit)
