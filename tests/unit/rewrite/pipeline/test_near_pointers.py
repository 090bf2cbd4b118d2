"""Hooks that read the application's LDS and private memory: what is there is what its own instructions get."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from emulated import LANES, Bench, code_object
from given import given, keep_narrow

from luthier_py.base.errors import CheckFailed, HookError, Unsupported
from luthier_py.binary.loader import MOST_STACK_BYTES, load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import AccessKind, AddressForm, Space, instruction_set, sgpr, target, targets, vgpr
from luthier_py.program.ir import Instr
from luthier_py.proof.claim import Payload
from luthier_py.proof.payloads import summary
from luthier_py.rewrite.claim_check import check_claim_of_tool
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.inject.policies import Private
from luthier_py.rewrite.jit import PayloadKey, compile_hooks, compile_keys
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Hook,
    Hooks,
    Lane,
    Mutator,
    Place,
    Tool,
    Variable,
    address,
    array,
    computed,
    destination,
    device,
    f32,
    hook,
    lds,
    ptr,
    scratch,
    u8,
    u32,
    u64,
)
from luthier_py.samples import sample

MOST = 512
OPTIONS = ("-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none "
           "-Xclang -target-feature -Xclang +enable-flat-scratch").split()
RUN_HERE, JUDGED = ("gfx900", "gfx90a", "gfx942"), ("gfx1010", "gfx1030", "gfx1100", "gfx1201", "gfx1250")


@hook
def in_lds(sums: ptr[u64], place: Lane[lds[u32]], dword: u32, number: u32) -> None:
    atomic_add(sums + number, u64(place[dword]))


@hook
def in_scratch(sums: ptr[u64], place: Lane[scratch[u32]], dword: u32, number: u32) -> None:
    atomic_add(sums + number, u64(place[dword]))


@hook
def with_stack(sums: ptr[u64], place: Lane[scratch[u32]], dword: u32, number: u32) -> None:
    """The same, by way of an array of its own that is not in registers."""
    own = array(u32, 100)
    for k in range(100):
        own[k] = u32(k)
    own[place[dword] % 100] = place[dword]
    atomic_add(sums + number, u64(own[place[dword] % 100]))


@hook
def value(sums: ptr[u64], x: Lane[u32], number: u32) -> None:
    atomic_add(sums + number, u64(x))


def dwords(instr: Instr) -> Iterator[tuple[int, int, int]]:
    """Element, dword of it, and dword of the destination."""
    access = instr.memory
    assert access is not None and access.bytes is not None
    each = access.bytes // 4
    for element in range(len(access.offsets)):
        yield from ((element, k, element * each + k) for k in range(each))


class Read(Tool):
    """What is in memory where instructions read, and what they get: sums over all lanes, for each dword."""

    before = Variable(u64, MOST)
    after = Variable(u64, MOST)

    def __init__(self, form: AddressForm, one: Hook) -> None:
        super().__init__()
        self.form, self.one, self.count = form, one, 0

    def instrument(self, m: Mutator) -> None:
        found = [instr for function in m.functions() for instr in m.instrs(function) if self.reads(instr)]
        self.count = 0
        for instr in found:
            for element, dword, into in dwords(instr):
                m.before(instr, self.one, self.before, address(instr, element), dword, self.count)
                m.after(instr, value, self.after, destination(instr, dword=into), self.count)
                self.count += 1

    def reads(self, instr: Instr) -> bool:
        access = instr.memory
        return access is not None and access.form is self.form and access.kind is AccessKind.LOAD and (
            access.bytes or 0) >= 4

    def report(self, launch: Any) -> dict[str, Any]:
        return {"before": launch[self.before], "after": launch[self.after]}


def ran(name: str, tool: Read, code: bytes = b"") -> dict[str, Any]:
    """The sample's launch with the tool, proved; its buffers are as without."""
    one = sample(name)
    code, launch = code or one.path.read_bytes(), launch_of(one)
    gpu = EmulatorDevice(load(code).target)
    before = run_original(gpu, code, launch).outputs
    after = run_instrumented(gpu, instrument(code, tool), tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in before.items()}
    assert tool.count > 0 and isinstance(after.report, dict)
    return after.report


@pytest.mark.parametrize("name", ["reduce", "matmul", "bitonic_sort", "transpose_padded", "lds_widths"])
def test_what_is_in_lds_is_what_instructions_read(name: str) -> None:
    report = ran(name, Read(AddressForm.LDS, in_lds))
    assert report["before"] == report["after"] and any(report["before"])


@pytest.fixture(scope="module", params=[*RUN_HERE, *JUDGED])
def compiled(request, require_tool, tmp_path_factory) -> Callable[[str], tuple[str, bytes]]:
    """Target and code of a sample, in which private memory is no buffer."""
    def code(name: str) -> tuple[str, bytes]:
        path = tmp_path_factory.mktemp("near") / f"{name}.co"
        source = sample(name).path.with_suffix(".hip")
        subprocess.run([require_tool("clang-22"), *OPTIONS, f"--offload-arch={request.param}", source, "-o", path],
                       check=True)
        return request.param, path.read_bytes()
    return code


@pytest.mark.parametrize(("name", "form", "one"), [
    ("reduce", AddressForm.LDS, in_lds), ("scratch", AddressForm.SCRATCH, in_scratch),
    ("scratch", AddressForm.SCRATCH, with_stack),
])
def test_each_generation(compiled, name: str, form: AddressForm, one: Hook) -> None:
    """Those that do not run here are proved only."""
    gpu, code = compiled(name)
    tool = Read(form, one)
    if gpu not in RUN_HERE:
        assert instrument(code, tool).patched.kernels and tool.count > 0
        return
    report = ran(name, tool, code)
    assert report["before"] == report["after"] and any(report["before"])


def test_every_target_has_code_that_is_accepted() -> None:
    for row in targets():
        isa = instruction_set(target(row.name), row.wave_sizes[0])
        for one, key in ((one, PayloadKey(one, (None,) * 4)) for one in (in_lds, in_scratch)):
            (made,) = compile_keys({key: None}, isa).values()
            assert made.frame_bytes == 0 and made.needs_private_memory is (one is in_scratch)


# -- what hooks can be given ----------------------------------------------------------------------

FILLED = [("v_lshlrev_b32", vgpr(4), 2, vgpr(0)), ("v_mul_u32_u24", vgpr(5), 3, vgpr(0)), ("s_mov_b32", sgpr(20), 16),
          ("ds_write_b32", vgpr(4), vgpr(5)), ("s_waitcnt", 0), ("s_nop", 0)]


@device
def word(place: Lane[lds[u32]], index: u32) -> Lane[u32]:
    return place[index]


@device
def moved(place: Lane[lds[u32]]) -> Lane[lds[u32]]:
    return place + 2 - 1


@device
def bits(place: lds[f32]) -> Lane[u32]:
    near = lds[u8](place)
    return u32(near[0]) | u32(near[1]) << 8 | u32(lds[u32](u32(place) + 4)[0]) << 16


@device
def looped(place: Lane[lds[u32]], count: Lane[u32]) -> Lane[u32]:
    found = u32(0)
    for k in range(count & 3):
        found += place[k]
    return found


@pytest.mark.parametrize(("asked", "want"), [
    (lambda: computed(word, vgpr(4), 0), lambda lane: 3 * lane),
    (lambda: computed(word, vgpr(4), 1), lambda lane: 3 * (lane + 1)),
    (lambda: computed(word, sgpr(20), 1), lambda lane: 15),
    (lambda: computed(word, 24, 1), lambda lane: 21),
    (lambda: computed(word, computed(moved, vgpr(4)), 2), lambda lane: 3 * (lane + 3)),
    (lambda: computed(bits, sgpr(20)), lambda lane: 12 | 15 << 16),
    (lambda: computed(looped, vgpr(4), vgpr(0)), lambda lane: sum(3 * (lane + k) for k in range(lane & 3))),
])
def test_pointers_are_registers_numbers_and_what_is_made_of_them(asked: Any, want: Callable[[int], int]) -> None:
    seen, _ = given(FILLED, lambda m, instrs: [(instrs[-1], Place.BEFORE, asked(), 32)], lds_bytes=4 * LANES + 64)
    assert seen[0][: LANES - 4] == tuple(map(want, range(LANES - 4)))


@hook
def far(out: ptr[u32], place: Lane[ptr[u32]]) -> None:
    out[0] = place[0]


@hook
def narrow(place: Lane[lds[u32]]) -> None:
    pass


@hook
def private(out: ptr[u32], place: Lane[scratch[u32]]) -> None:
    atomic_add(out, place[0])


@hook(lanes="one")
def of_one(out: ptr[u32], place: scratch[u32]) -> None:
    out[0] = place[0]


def at_first_lds(call: Callable[[Mutator, Instr, Variable], None]) -> bytes:
    class Asks(Tool):
        out = Variable(u32)

        def instrument(self, m: Mutator) -> None:
            call(m, next(i for i in m.instrs(m.functions()[0], where="lds & load")), self.out)

    return instrument(sample("reduce").path.read_bytes(), Asks()).data


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda m, i, out: m.before(i, far, out, address(i)), HookError,
     r"place: Lane\[ptr\[u32\]\] cannot take the address of ds_read\S*; declare it place: Lane\[lds\[u32\]\]"),
    (lambda m, i, out: m.before(i, private, out, address(i)), HookError, r"declare it place: Lane\[lds\[u32\]\]"),
    (lambda m, i, out: m.before(i, narrow, vgpr(2, 2)), HookError, r"2 dwords wide, lds\[u32\] is 1"),
    (lambda m, i, out: m.before(i, narrow, 1 << 32), HookError, r"cannot hold 4294967296"),
    (lambda m, i, out: m.before(i, narrow, out), HookError, r"cannot take"),
    (lambda m, i, out: m.before(i, private, out, 16), HookError, r"cannot take a number"),
    (lambda m, i, out: m.before(i, private, out, vgpr(0)), Unsupported,
     "hook private reads private memory, and the kernel has none of its own"),
    (lambda m, i, out: m.before(i, of_one, out, sgpr(0)), Unsupported, "has none of its own"),
])
def test_what_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        at_first_lds(call)


def test_a_stack_that_grows_can_be_read() -> None:
    class Asks(Tool):
        out = Variable(u32)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], private, self.out, vgpr(0))

    (kernel,) = instrument(sample("function_pointers").path.read_bytes(), Asks()).patched.kernels
    assert kernel.descriptor.private_segment_fixed_size >= MOST_STACK_BYTES


# -- what is not believed ---------------------------------------------------------------------------


def test_what_the_claim_does_not_say_is_refused() -> None:
    isa = instruction_set(target("gfx90a"))
    for one, message in ((in_lds, "local memory"), (in_scratch, "private memory")):
        (made,) = compile_keys({PayloadKey(one, (None,) * 4): None}, isa).values()
        code = b"".join(inst.raw for inst in made.instrs)
        space = one.signature.parameters[1].type.space
        nothing = [Space.NONE] * 4
        near = tuple([nothing[0], space, *nothing[2:]])
        right = Payload("hook", code, tuple(slot.reg for slot in made.params), (), (1, 0, 0, 0), (8, 0, 0, 0), None,
                        stack=made.stack, near=near)
        assert summary(isa, right).private is (one is in_scratch)
        for wrong in ((), tuple([space, *nothing[1:]]), tuple(nothing)):
            with pytest.raises(CheckFailed, match=message):
                summary(isa, replace(right, near=wrong))


# -- hooks in C++ -------------------------------------------------------------------------------------

IN_CPP = r"""
#include <luthier/hooks.h>
using namespace luthier;
LUTHIER_HOOK() void in_lds(u64 *sums, lane<lds<u32>> place, u32 dword, u32 number) {
    atomic_add(&sums[number], u64(place[dword]));
}
LUTHIER_HOOK() void in_scratch(u64 *sums, lane<scratch<u32>> place, u32 dword, u32 number) {
    scratch<u32> here = place;
    atomic_add(&sums[number], u64(*(here + dword)));
}
struct Both { lane<lds<u32>> next; lane<u32> here; };
LUTHIER_HOOK() Both both(lane<lds<u32>> place, lds<u32> start) { return {place + 1, *place + start[2]}; }
LUTHIER_DEVICE lane<lds<u32>> next(lane<lds<u32>> place) { return place + 1; }
LUTHIER_DEVICE u32 third(lds<u32> place) { return place[2]; }
"""


@pytest.fixture
def in_cpp(require_tool, monkeypatch) -> Hooks:
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))
    return Hooks.from_hip(IN_CPP)


@pytest.mark.parametrize(("name", "form"), [("reduce", AddressForm.LDS), ("scratch", AddressForm.SCRATCH)])
def test_hooks_in_cpp(in_cpp: Hooks, compiled, name: str, form: AddressForm) -> None:
    gpu, code = compiled(name)
    tool = Read(form, in_cpp["in_lds" if form is AddressForm.LDS else "in_scratch"])
    if gpu not in RUN_HERE:
        assert instrument(code, tool).patched.kernels and tool.count > 0
        return
    report = ran(name, tool, code)
    assert report["before"] == report["after"] and any(report["before"])


def test_pointers_go_in_and_out_of_cpp(in_cpp: Hooks) -> None:
    @device
    def beyond(place: Lane[lds[u32]], start: lds[u32]) -> Lane[u32]:
        return in_cpp.next(place)[0] + in_cpp.third(start)

    class Both(Tool):
        where, found, out = Variable(u32, LANES), Variable(u32, LANES), Variable(u32, LANES)

        def instrument(self, m: Mutator) -> None:
            last = m.instrs(m.program.kernel("k").function)[-1]
            m.before(last, keep_narrow, self.out, computed(beyond, vgpr(4), sgpr(20)))
            m.before(last, in_cpp.both, vgpr(4), sgpr(20), into=(vgpr(4), vgpr(5)))
            m.before(last, keep_narrow, self.where, vgpr(4))
            m.before(last, keep_narrow, self.found, vgpr(5))

    data = code_object({"k": [*FILLED, ("s_endpgm", 0)]}, lds_bytes=4 * LANES + 64)
    ran = Bench(bytes(64), bytes(64), bytes(64)).run(instrument(data, Both()).data, "k.luthier")
    lanes = range(LANES - 1)
    assert ran[Both.where][:-1] == tuple(4 * (lane + 1) for lane in lanes)
    assert ran[Both.found][:-1] == tuple(3 * lane + 18 for lane in lanes)
    assert ran[Both.out][:-1] == tuple(3 * (lane + 1) + 18 for lane in lanes)


def test_private_memory_that_nobody_has_set_up_is_refused(compiled, monkeypatch) -> None:
    monkeypatch.setattr(Private, "compute_used_range", lambda self, cells: range(0))
    with pytest.raises(CheckFailed, match="hook in_scratch touches private memory, and the kernel is not started with"):
        instrument(compiled("scratch")[1], Read(AddressForm.SCRATCH, in_scratch))


@pytest.mark.parametrize("change", [
    {"near": (), "near_numbers": Space.LDS}, {"near": (Space.NONE, Space.SCRATCH)}, {"near_numbers": Space.LDS},
    {"near": (Space.LDS, Space.NONE)},
])
def test_a_claim_has_what_the_hook_declares(change: dict[str, Any]) -> None:
    class Asks(Tool):
        out = Variable(u64)

        def instrument(self, m: Mutator) -> None:
            instr = next(i for i in m.instrs(m.functions()[0], where="lds & load"))
            m.before(instr, in_lds, self.out, address(instr), 0, 0)

    made = instrument(sample("reduce").path.read_bytes(), Asks())
    claim = made.patched.claim
    (payload,) = claim.payloads
    assert payload.near == (Space.NONE, Space.LDS) and payload.near_numbers is Space.NONE
    payloads = compile_hooks(made.edits, made.program.isa)
    clones = {each.name: each.clone for each in made.patched.report}
    check_claim_of_tool(claim, made.edits, payloads, made.program, clones, ())
    wrong = replace(claim, payloads=(replace(payload, **change),))
    with pytest.raises(CheckFailed, match="is not as it was compiled"):
        check_claim_of_tool(wrong, made.edits, payloads, made.program, clones, ())
