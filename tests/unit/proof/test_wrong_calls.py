"""Calls that an injector, or whoever compiles hooks, gets wrong in one way, on all generations: each is refused.

The claim says what the code does, so only what the tool asked for and the meaning of instructions can tell.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from compiled_samples import OPTIONS
from each_target import sometimes
from injectors.calls import of_mode
from stack_hooks import stack_hooks

from luthier_py import Lane, Mutator, Tool, Variable, WaveVariable, f32, hook, ptr, u32, u64
from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import load
from luthier_py.intrinsics import as_bits, atomic_add, read_first_lane
from luthier_py.isa import EXEC, SCC, build, sgpr
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.inject import apply, call, claimed, items
from luthier_py.rewrite.inject.call import Caller
from luthier_py.rewrite.inject.items import Slice
from luthier_py.rewrite.jit import compile as hooks
from luthier_py.rewrite.jit import fragment
from luthier_py.rewrite.jit import object as jit_object
from luthier_py.rewrite.jit.payload import Hole
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import Hooks

ALWAYS = ("gfx900", "gfx1100")
TARGETS = sometimes(ALWAYS, ("gfx803", "gfx942", "gfx1030", "gfx1201"))
KERNEL = """
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void k(unsigned *out, unsigned n) {
    unsigned x = __builtin_amdgcn_workitem_id_x(), t = x * n;
    if (x % 3 == n) asm volatile("s_cmp_lt_u32 %1, 9\\n\\ts_nop 7\\n\\tv_mov_b32 %0, %0\\n\\ts_cselect_b32 m0, 1, 0"
                                 : "+v"(t) : "s"(n));
    out[x] = t;
}
"""


@pytest.fixture(scope="module", params=TARGETS)
def code(request, require_tool, tmp_path_factory) -> bytes:
    """SCC is live at the marker, only some lanes are active there, and floats are flushed."""
    folder = tmp_path_factory.mktemp("calls")
    (folder / "k.hip").write_text(KERNEL)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O2", "-fgpu-flush-denormals-to-zero",
                    f"--offload-arch={request.param}", folder / "k.hip", "-o", folder / "k.co"], check=True)
    return (folder / "k.co").read_bytes()


class Numbers(Tool):
    """Hooks that do not commute, of lanes, of floats, with constants that are fields."""

    found = Variable(u32, 2)
    sums = Variable(u64, 4)
    value = WaveVariable(u32)
    votes = WaveVariable(u32)

    @hook
    def twice(value: u32) -> u32:
        return value + value

    @hook
    def more(value: u32) -> u32:
        return value + u32(1)

    @hook
    def vote(votes: u32, x: Lane[u32]) -> u32:
        return votes + read_first_lane(x)

    @hook
    def small(found: ptr[u32], x: Lane[u32]) -> None:
        atomic_add(found, as_bits(f32(x) * f32(1e-38) * f32(1e-3)))

    @hook(lanes="one", fold=False)
    def add(sum: ptr[u64], by: u64, value: u32, votes: u32, more: u32) -> None:
        atomic_add(sum, by + u64(value) * u64(votes) + u64(more))

    @hook(lanes="all")
    def everywhere(sum: ptr[u64]) -> None:
        atomic_add(sum, u64(1))

    def instrument(self, m: Mutator) -> None:
        (function,) = m.functions()
        instrs = m.instrs(function)
        (at,) = (k for k, i in enumerate(instrs) if i.inst.op.base == "S_NOP" and i.inst["simm16"].value == 7)
        lanes = instrs[at + 1].inst["vdst"].reg
        m.after(instrs[at], self.twice, self.value, into=self.value)
        m.before(instrs[at + 1], self.more, self.value, into=self.value)
        m.before(instrs[at + 1], self.vote, self.votes, lanes, into=self.votes)
        m.before(instrs[at + 1], self.small, self.found[1], lanes)
        m.before(instrs[-1], self.add, self.sums[2], 0x1234_5678_9ABC_DEF0, self.value, self.votes,
                 0x1234567)
        m.before(instrs[at], self.everywhere, self.sums[0])


Patch = Callable[[pytest.MonkeyPatch], None]


def put(owner: Any, name: str, make: Callable[[Any], Any]) -> Patch:
    """``make`` gets what was there."""
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(owner, name, make(getattr(owner, name)))

    return patch


def made_once(*patches: Patch) -> Patch:
    """Of what compiles hooks, which keeps what it has made."""
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hooks, "_payloads", {})
        for each in patches:
            each(monkeypatch)

    return patch


def of_payload(**changes: Callable[[Any], Any]) -> Patch:
    return made_once(put(fragment, "payload", lambda payload: lambda *given: (
        lambda made: replace(made, **{name: change(getattr(made, name)) for name, change in changes.items()}))(
            payload(*given))))


def holes(**changes: Callable[[Any], Any]) -> Patch:
    return of_payload(holes=lambda all_: tuple(
        replace(hole, **{name: change(getattr(hole, name)) for name, change in changes.items()}) for hole in all_))


def behind_the_next(inline_calls: Any) -> Any:
    """What goes after an instruction goes behind what goes before the next one."""
    def woven(isa, clone, before, after, taken):
        before, after = dict(before), dict(after)
        for pc in list(after):
            following = min(each for each in before if each > pc)
            before[following] = [*before[following], *after.pop(pc)]
        return inline_calls(isa, clone, before, after, taken)

    return woven


def without_one(inline_calls: Any) -> Any:
    """The application loses an instruction."""
    def woven(isa, clone, *inserted):
        first = next(k for k, item in enumerate(clone.items) if isinstance(item, Slice) and item.stop - item.start > 1)
        left = replace(clone.items[first], start=clone.items[first].start + 1)
        return inline_calls(isa, replace(clone, items=(*clone.items[:first], left, *clone.items[first + 1 :])),
                            *inserted)

    return woven


def run_first(self, placement) -> None:
    """The mode is set and put back, and then the hook runs."""
    for inst in self.set_mode():
        self.emit(inst)
    self.inline(placement)
    if (keep := self.saved.pop(sgpr(EXEC, 2), None)) is not None:
        self.copy(sgpr(EXEC, 2), keep)


def run_in_its_lanes_for_ever(self, placement) -> None:
    back = self.set_mode()
    self.inline(placement)
    for inst in back:
        self.emit(inst)
    self.saved.pop(sgpr(EXEC, 2), None)


ORDER, LANE, FLOATS = "in another order than", "where no lane may be active", "under another MODE"
CONSTANTS, CODE, LIVE = "gets other constants", "not as it was compiled", "is live and not restored"
WRONG: dict[str, tuple[Patch, str]] = {
    "behind what is before the next one": (put(apply, "inline_calls", behind_the_next), ORDER),
    "the application loses an instruction": (put(apply, "inline_calls", without_one),
                                             "order|cuts|should|not part|nothing"),
    "runs without a lane": (
        put(apply, "prepare", lambda prepare: lambda isa, payload: prepare(isa, replace(payload, needs_lane=False))),
        LANE,
    ),
    "is not said to need a lane": (made_once(put(fragment, "_needs_lane", lambda _: lambda *given: False)), LANE),
    "runs only without a lane": (put(build, "jump_if_no_lane", lambda _: lambda isa: isa.make("s_cbranch_execnz", 0)),
                                 LANE),
    "has the application's mode": (put(Caller, "set_mode", lambda _: lambda self: []), FLOATS),
    "flushes denormals": (put(call, "PLAIN_MODE", lambda _: 0x3C0), FLOATS),
    "rounds to zero": (put(call, "PLAIN_MODE", lambda _: 0x3FF), FLOATS),
    "is claimed to flush": (
        lambda monkeypatch: [monkeypatch.setattr(each, "PLAIN_MODE", 0x3C0) for each in (call, claimed)] and None,
        CODE,
    ),
    "the application is said to compute plainly": (put(apply, "fields_unlike_plain", lambda _: lambda *given: ()),
                                                   FLOATS),
    "the mode is put back too early": (put(Caller, "run", lambda _: run_first), FLOATS),
    "half of the mode is set": (of_mode(lambda field: field & ~(31 << 11) | 3 << 11), FLOATS),
    "the mode stays": (
        put(build, "set_mode", lambda made: lambda isa, field,
            source: made(isa, field, source if isinstance(source, int) else 0xF0)),
        "MODE is not restored",
    ),
    "halves of constants are swapped": (holes(high=lambda high: not high), CONSTANTS),
    "constants are one more": (holes(added=lambda added: added + 1), CONSTANTS),
    "constants are one less where they are filled in": (
        put(Hole, "compute_dword", lambda filled: lambda *given: filled(*given) - 1),
        CONSTANTS,
    ),
    "constants are those of another parameter": (holes(position=lambda position: 5 - position), CONSTANTS),
    "a hook loses its first instruction": (
        made_once(
            put(fragment, "without_prologue",
                lambda without: lambda instrs: without(instrs)[instrs[0].literal is None :])
        ),
        CODE,
    ),
    "a hook loses its last instruction": (
        made_once(put(fragment, "without_last_wait", lambda without: lambda instrs: without(instrs)[:-1])),
        f"{CODE}|its loads",
    ),
    "a hook has its last instruction twice": (of_payload(instrs=lambda instrs: (*instrs, instrs[-1])), CODE),
    "arguments are exchanged": (
        of_payload(params=lambda params: params if len(params) < 3 else (params[0], params[2], params[1], *params[3:])),
        CODE,
    ),
    "another element": (
        put(
            call,
            "address_of",
            lambda made: (
                lambda isa, edit, to, pc, base, target: made(
                    isa, edit, to, pc, base, replace(target, offset=target.offset + 4)
                )
            ),
        ),
        "does not get",
    ),
    "addresses without their carry": (put(items, "add_with_carry", lambda _: items.add), "does not get"),
    "the flag comes back the other way round": (
        put(build, "set_flag", lambda _: lambda isa, reg, number=0: isa.make("s_cmp_eq_u32", reg, number)),
        LIVE,
    ),
    "the flag is kept the other way round": (
        put(
            build,
            "copy",
            lambda made: (
                lambda isa, to, source: (
                    isa.make("s_cselect_b32", to, 0, 1) if source == sgpr(SCC) else made(isa, to, source)
                )
            ),
        ),
        LIVE,
    ),
    "nothing is kept": (put(Caller, "save", lambda _: lambda self, clobbered, given: None), LIVE),
    "nothing comes back": (put(Caller, "restore", lambda _: lambda self: None), LIVE),
    "EXEC stays": (put(Caller, "run", lambda _: run_in_its_lanes_for_ever), "EXEC is not restored|live and not|never"),
    "one lane is all": (put(Caller, "set_exec", lambda _: lambda self, placement: self.copy(sgpr(EXEC, 2), -1)),
                        "other lanes"),
    "nothing is cleared": (put(apply, "with_prologue", lambda _: lambda isa, clone, *given: clone), LIVE),
}


def made(code: bytes) -> Instrumented:
    return instrument(code, Numbers())


def test_what_is_right_passes(code) -> None:
    assert len(made(code).patched.claim.functions[0].calls) == 6


def starting(code: bytes, **fields: int) -> bytes:
    """The same kernel with another descriptor."""
    (kernel,) = load(code).kernels
    return code.replace(kernel.descriptor.raw, kernel.descriptor.replace(**fields).raw)


PLAIN = {"float_denorm_mode_32": 3}
MODES = {"NaN is not clamped": {"enable_dx10_clamp": 0}, "IEEE mode is off": {"enable_ieee_mode": 0},
         "FP16_OVFL is on": {"fp16_ovfl": 1}}


def test_hooks_may_run_under_every_mode(code) -> None:
    others = {name: value for fields in MODES.values() for name, value in fields.items()}
    assert len(made(starting(code, **others)).patched.claim.functions[0].calls) == 6


@pytest.mark.parametrize("fields", MODES.values(), ids=MODES)
def test_no_hook_runs_under_another_mode(code, fields, monkeypatch) -> None:
    """The injector looks at rounding and denormals alone, and these are as hooks have them. Where a target has no such
    bit, others mean something else in its descriptors."""
    monkeypatch.setattr(apply, "fields_unlike_plain", lambda *given: ())
    data, isa = starting(code, **PLAIN, **fields), load(code).target
    had, has = ((load(each).kernels[0].descriptor.mode(isa)) for each in (starting(code, **PLAIN), data))
    if had == has:
        made(data)
        return
    with pytest.raises(CheckFailed, match=FLOATS):
        made(data)


@pytest.mark.parametrize(("wrong", "why"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(code, wrong, why, monkeypatch) -> None:
    wrong(monkeypatch)
    with pytest.raises(CheckFailed, match=why):
        made(code)


@pytest.fixture(scope="module")
def stack_of_32(require_tool):
    """A hook that has 32 dwords of stack."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CLANG, require_tool("clang++-22"))
        yield Hooks.from_hip(stack_hooks("x & 127")).last


class Stacked(Tool):
    """Gives lanes of the marker's register what the hook made of them."""

    def __init__(self, last) -> None:
        super().__init__()
        self.last = last

    def instrument(self, m: Mutator) -> None:
        (function,) = m.functions()
        instrs = m.instrs(function)
        (at,) = (k for k, i in enumerate(instrs) if i.inst.op.base == "S_NOP" and i.inst["simm16"].value == 7)
        lanes = instrs[at + 1].inst["vdst"].reg
        m.before(instrs[at], self.last, lanes, 5, into=lanes)


STACKS = {
    "half a frame is said": (of_payload(frame_bytes=lambda size: size // 2), "more of a stack|not as it was compiled"),
    "a dword less is said": (of_payload(frame_bytes=lambda size: size - 4), "more of a stack|not as it was compiled"),
}


@pytest.mark.parametrize(("wrong", "why"), STACKS.values(), ids=STACKS)
def test_stacks_that_are_too_small_are_refused(code, stack_of_32, wrong, why, monkeypatch) -> None:
    (function,) = instrument(code, Stacked(stack_of_32)).patched.claim.functions
    assert len(function.private) >= 128
    wrong(monkeypatch)
    with pytest.raises(CheckFailed, match=why):
        instrument(code, Stacked(stack_of_32))


class Sorted(Tool):
    """Has an array that computed indexes alone reach."""

    out = Variable(u32, 128)

    def __init__(self, sorted) -> None:
        super().__init__()
        self.sorted = sorted

    def instrument(self, m: Mutator) -> None:
        (function,) = m.functions()
        instrs = m.instrs(function)
        (at,) = (k for k, i in enumerate(instrs) if i.inst.op.base == "S_NOP" and i.inst["simm16"].value == 7)
        m.before(instrs[at], self.sorted, self.out, instrs[at + 1].inst["vdst"].reg)


def test_what_llvm_says_of_a_stack_is_read_twice(code, require_tool, monkeypatch) -> None:
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))
    wrong = put(jit_object, "_frames", lambda frames: lambda said: {
        name: size // 2 for name, size in frames(said).items()})
    hook = Hooks.from_hip(stack_hooks("x & 127")).sorted
    monkeypatch.setattr(hooks, "_codes", {})
    monkeypatch.setattr(hooks.cache, "read", lambda name: None)
    monkeypatch.setattr(hooks.cache, "write", lambda name, data: None)
    made_once(wrong)(monkeypatch)
    with pytest.raises(CheckFailed, match="not as it was compiled"):
        instrument(code, Sorted(hook))
