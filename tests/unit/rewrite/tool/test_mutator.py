"""Recording edits on real programs: what is kept, where, and what is refused with the tool's file and line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from luthier_py.base.errors import EditConflict, HookError, Invalid, ToolError
from luthier_py.binary.loader import load
from luthier_py.isa import EXEC, SCC, VCC, Operand, OperandKind, OpFlag, agpr, sgpr, vgpr
from luthier_py.program.analysis import Facts, analyse
from luthier_py.program.ir import Block, Ending, Program, lift
from luthier_py.rewrite.tool import (
    Edits,
    Lane,
    Mutator,
    Place,
    Selection,
    Tool,
    Turn,
    Variable,
    WaveVariable,
    bool_,
    f32,
    hook,
    i32,
    ptr,
    u32,
    u64,
    visit,
)
from luthier_py.rewrite.tool.chosen.filters import compile_filter

DATA = Path(__file__).resolve().parents[3] / "data"


@hook
def add(count: u64, n: u32) -> u64:
    return count + n


@hook
def nothing() -> None:
    pass


@hook
def take(x: u32, y: f32, flag: bool_) -> None:
    pass


@hook
def lanes(x: Lane[u32], y: Lane[u64]) -> Lane[u32]:
    return x


@hook
def two(p: ptr[u64], mask: u64) -> tuple[u64, u32]:
    return mask, 1


@hook(lanes="one")
def flush(total: ptr[u64], count: u64) -> None:
    total[0] = count


TOTAL, BINS = Variable(u64, name="total"), Variable(u32, 8, name="bins")
COUNT, SMALL = WaveVariable(u64), WaveVariable(i32)
NAMED = re.compile(r"^\S*test_mutator.py:\d+: ")


def read(name: str) -> tuple[Program, Facts]:
    program = lift(load((DATA / f"{name}.co").read_bytes(), name))
    return program, analyse(program)


@pytest.fixture(scope="module")
def reduce() -> tuple[Program, Facts]:
    return read("reduce")


@pytest.fixture
def m(reduce: tuple[Program, Facts]) -> Mutator:
    return Mutator(*reduce)


def blocks(m: Mutator) -> list[Block]:
    return [block for function in m.functions() for block in function.blocks]


def test_what_is_kept(m: Mutator) -> None:
    block = blocks(m)[0]
    first, second = block.instrs[:2]
    m.before(second, add, COUNT, 7, into=COUNT)
    m.after(first, nothing)
    m.before(first, two, TOTAL, sgpr(EXEC, 2), into=(COUNT, sgpr(4)))
    edits = m.edits((BINS,))
    kept = [(i.places, i.hook, i.args, i.into, i.order) for i in edits.insertions]
    assert kept == [
        (((second, Place.BEFORE),), add, (COUNT, 7), (COUNT,), 0),
        (((first, Place.AFTER),), nothing, (), (), 1),
        (((first, Place.BEFORE),), two, (TOTAL, sgpr(EXEC, 2)), (COUNT, sgpr(4)), 2),
    ]
    assert edits.insertions[0].constants == (None, 7) and edits.insertions[0].runtime_args == (COUNT,)
    assert edits.variables == (BINS, TOTAL) and edits.wave_variables == (COUNT,)


def test_no_edits(m: Mutator) -> None:
    assert m.edits() == Edits((), (), ())


def test_blocks_and_stretches(m: Mutator) -> None:
    for block in blocks(m):
        stretches = m.stretches(block)
        assert [i for s in stretches for i in s.instrs] == list(block.instrs)
        for stretch in stretches:
            for instr in stretch.instrs[:-1]:
                assert not instr.inst.writes.overlaps(sgpr_set())
        m.at_block(block, add, COUNT, 1, into=COUNT, anywhere=True)
        places = m.edits().insertions[-1].places
        assert places == tuple((i, Place.BEFORE) for i in stretches[0].instrs)
        m.at_block(block, add, COUNT, 1, into=COUNT)
        assert m.edits().insertions[-1].places == ((block.instrs[0], Place.BEFORE),)
        m.at_block(block, flush, TOTAL, COUNT, anywhere=True)
        assert len(m.edits().insertions[-1].places) == len(block.instrs)


def sgpr_set() -> Any:
    from luthier_py.isa import RegSet

    return RegSet.of(sgpr(EXEC, 2))


def test_the_range_ends_at_a_call() -> None:
    m = Mutator(*read("device_call"))
    called = [b for b in blocks(m) if any(i.inst.op.flags & OpFlag.CALL for i in b.instrs)]
    assert called
    for block in called:
        m.at_block(block, flush, TOTAL, COUNT, anywhere=True)
        instrs = [instr for instr, _ in m.edits().insertions[-1].places]
        assert [bool(i.inst.op.flags & OpFlag.CALL) for i in instrs] == [False] * (len(instrs) - 1) + [True]


def test_entry_and_exit(m: Mutator) -> None:
    (kernel,) = m.kernels
    m.at_entry(kernel, nothing)
    assert m.edits().insertions[0].instr == kernel.function.blocks[0].instrs[0]
    for _ in range(2):  # recorded once
        m.at_exit(kernel, flush, TOTAL, COUNT)
    ends = [b.instrs[-1] for b in blocks(m) if b.ending is Ending.END]
    assert ends and [i.instr for i in m.edits().insertions[1:]] == ends


def test_calls_at_one_point_have_their_order_by_meaning(m: Mutator) -> None:
    (kernel,) = m.kernels
    end = next(b.instrs[-1] for b in blocks(m) if b.ending is Ending.END)
    m.at_exit(kernel, flush, TOTAL, COUNT)
    m.before(end, nothing)
    m.at_entry(kernel, add, COUNT, 1, into=COUNT)
    m.at_exit(kernel, flush, TOTAL, 1)
    m.at_entry(kernel, add, COUNT, 2, into=COUNT)
    ranked = sorted(m.edits().insertions, key=lambda i: i.rank)
    assert [i.turn for i in ranked] == [Turn.ENTRY] * 2 + [Turn.BODY] + [Turn.EXIT] * 2
    assert [i.args for i in ranked] == [(COUNT, 1), (COUNT, 2), (), (TOTAL, COUNT), (TOTAL, 1)]


def test_the_function_of_a_kernel_stands_for_it(m: Mutator) -> None:
    (kernel,) = m.kernels
    m.at_exit(kernel.function, flush, TOTAL, COUNT)
    m.at_exit(kernel, flush, TOTAL, COUNT)  # the same
    assert [i.instr for i in m.edits().insertions] == [b.instrs[-1] for b in blocks(m) if b.ending is Ending.END]


def test_functions_return() -> None:
    m = Mutator(*read("device_call"))
    callee = next(f for f in m.functions() if not f.kernel)
    assert set(m.functions(m.kernels[0])) <= set(m.functions())
    m.at_entry(callee, nothing)
    m.at_exit(callee, nothing)
    first, *returns = (i.instr for i in m.edits().insertions)
    assert first.pc == callee.address and returns
    assert all(i.inst.op.flags & OpFlag.INDIRECT for i in returns)


def test_values_become_what_parameters_hold(m: Mutator) -> None:
    instr = blocks(m)[0].instrs[0]

    def operand(kind: OperandKind, value: int, reg: Any = None) -> Operand:
        return Operand("src0", kind, instr.inst.operands[0].access, reg, value)

    one = operand(OperandKind.CONSTANT, 0x3F800000)
    m.before(instr, take, operand(OperandKind.IMMEDIATE, -4), one, True)
    m.before(instr, take, operand(OperandKind.REGISTER, 0, sgpr(9)), 1, False)
    m.before(instr, take, sgpr(SCC), 2.5, True)
    m.before(instr, two, BINS_AS_U64[1], COUNT, into=(sgpr(VCC, 2), sgpr(3)))
    kept = [i.args for i in m.edits().insertions]
    assert kept == [(2**32 - 4, 1.0, True), (sgpr(9), 1.0, False), (sgpr(SCC), 2.5, True), (BINS_AS_U64[1], COUNT)]
    assert m.edits().variables == (BINS_AS_U64,)


BINS_AS_U64 = Variable(u64, 2, name="wide")


@pytest.mark.parametrize(
    ("used", "args", "into", "message"),
    [
        (add, (COUNT,), COUNT, "hook add has 2 arguments, 1 given; declared at .*test_mutator.py:"),
        (add, (COUNT, 1), None, r"hook add has 1 result \(into=\), 0 given"),
        (nothing, (), COUNT, r"hook nothing has 0 results \(into=\), 1 given"),
        (two, (TOTAL, COUNT), (COUNT, COUNT), r"result 1 \(u32\) cannot go into"),
        (two, (TOTAL, COUNT), (sgpr(4, 2), sgpr(4, 2)), "is 2 dwords wide, u32 is 1"),
        (add, (COUNT, -1), COUNT, "n: u32 cannot hold -1"),
        (add, (COUNT, 2**32), COUNT, "n: u32 cannot hold 4294967296"),
        (add, (COUNT, 1.5), COUNT, "n: u32 cannot take float 1.5; give a Python number, a register"),
        (add, (COUNT, "3"), COUNT, "n: u32 cannot take str '3'"),
        (add, (COUNT, None), COUNT, "n: u32 cannot take NoneType None"),
        (add, (SMALL, 1), COUNT, r"count: u64 cannot take WaveVariable\(.*: i32\); declare it count: i32"),
        (add, (TOTAL, 1), COUNT, r"count: u64 cannot take Variable\(total: u64\); declare it count: ptr\[u64\]"),
        (two, (BINS, COUNT), (COUNT, sgpr(1)), r"p: ptr\[u64\] cannot take Variable\(bins: u32\)"),
        (two, (BINS[1], COUNT), (COUNT, sgpr(1)), r"p: ptr\[u64\] cannot take"),
        (two, (2**64, COUNT), (COUNT, sgpr(1)), r"p: ptr\[u64\] cannot hold"),
        (add, (sgpr(4), 1), COUNT, "s4 is 1 dword wide, u64 is 2"),
        (add, (vgpr(4, 2), 1), COUNT, r"v\[4:5\] does not fit; give an SGPR \(or declare it Lane\[u64\]\)"),
        (lanes, (sgpr(4), vgpr(2, 2)), agpr(1, 2), "a.* is 2 dwords wide"),
        (lanes, (COUNT, vgpr(2, 2)), vgpr(1), r"x: u32 cannot take WaveVariable"),
        (lanes, (1, 2), COUNT, r"the result \(u32\) cannot go into WaveVariable"),
        (lanes, (1, 2), sgpr(1), "s1 does not fit; give a VGPR"),
        (lanes, (1, 2), 5, "the result .* cannot go into 5; give a WaveVariable or a register"),
        (add, (COUNT, 1), sgpr(EXEC, 2), "exec; only plain SGPRs, VCC, M0, SCC, VGPRs and AGPRs may be"),
        (add, (COUNT, 1), sgpr(VCC - 1, 2), "only plain SGPRs"),
        (add, (COUNT, 1), SMALL, "its type must be i32"),
        (take, (1, 2, sgpr(4)), None, "flag: bool_ takes a compile-time True or False only, not s4"),
        (take, (1, 2, 3), None, "flag: bool_ takes True or False, not 3"),
        (take, (1, float("nan"), True), None, "cannot be NaN"),
        (take, (1, 1e300, True), None, "too large for f32"),
        (take, (sgpr(129), 1.0, True), None, "x: u32 cannot take mode"),
        (take, (Operand("saddr", OperandKind.ABSENT, None), 1, True), None, "operand saddr; it is neither"),  # type: ignore[arg-type]
    ],
)
def test_refused_calls(m: Mutator, used: Any, args: Any, into: Any, message: str) -> None:
    with pytest.raises(HookError, match=message) as caught:
        m.before(blocks(m)[0].instrs[0], used, *args, into=into)
    assert NAMED.match(str(caught.value))
    assert m.edits().insertions == ()


def test_two_results_need_two_places(m: Mutator) -> None:
    @hook
    def same(x: u32) -> tuple[u32, u32]:
        return x, x

    with pytest.raises(HookError, match="two results go into one place"):
        m.before(blocks(m)[0].instrs[0], same, 1, into=(sgpr(1), sgpr(1)))


def test_only_hooks_are_called(m: Mutator) -> None:
    with pytest.raises(HookError, match=r"test_mutator.py:\d+: <function .*> is not a hook; mark the function with"):
        m.before(blocks(m)[0].instrs[0], add.function)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, k, b: m.before(b, nothing), "needs Instr, not Block.*; at_block takes it"),
        (lambda m, k, b: m.after("x", nothing), "needs Instr, not 'x'$"),
        (lambda m, k, b: m.at_block(b.instrs[0], nothing), "before and after take it"),
        (lambda m, k, b: m.at_stretch(b, nothing), "at_block takes it"),
        (lambda m, k, b: m.at_region(m.stretches(b)[0], nothing), "at_stretch takes it"),
        (lambda m, k, b: m.at_entry(b, nothing), "needs Kernel or Function"),
        (lambda m, k, b: m.at_exit(m.kernels, nothing), "needs Kernel or Function"),
        (lambda m, k, b: m.blocks(k), "needs Function, .* kernel.function is its code"),
        (lambda m, k, b: m.instrs(k), "kernel.function is its code"),
        (lambda m, k, b: m.regions(k), "kernel.function is its code"),
        (lambda m, k, b: m.functions(k.name), "needs Kernel, not 'reduce'"),
        (lambda m, k, b: m.stretches(k), "needs Block"),
        (lambda m, k, b: m.runs(k), "needs Block"),
    ],
)
def test_things_of_another_kind(m: Mutator, call: Any, message: str) -> None:
    (kernel,) = m.kernels
    with pytest.raises(HookError, match=message) as caught:
        call(m, kernel, blocks(m)[0])
    assert NAMED.match(str(caught.value))


@pytest.mark.parametrize(
    ("index", "message"),
    [(9, r"Variable\(bins: u32\) has no element 9; it has elements 0 to 7"), (-1, "has no element -1"),
     ("a", "'a' is no integer"), (1.0, "1.0 is no integer")],
)
def test_elements(index: Any, message: str) -> None:
    with pytest.raises(Invalid, match=message) as caught:
        BINS[index]
    assert NAMED.match(str(caught.value))
    with pytest.raises(Invalid, match=r"test_mutator.py:\d+: Variable\(total: u64\) has no element 0; it has one v"):
        TOTAL[0]


def test_refused_places(m: Mutator) -> None:
    block = blocks(m)[0]
    with pytest.raises(EditConflict, match="nothing can be inserted after the branch or end of a block"):
        m.after(block.instrs[-1], nothing)
    other, _ = read("reduce")
    with pytest.raises(EditConflict, match="is not of this program"):
        m.before(other.kernels[0].function.blocks[0].instrs[0], nothing)
    with pytest.raises(HookError, match="leaves the place open, but the value of s4 depends on it"):
        m.at_block(block, add, COUNT, sgpr(4), into=COUNT, anywhere=True)
    m.at_block(block, two, TOTAL, sgpr(EXEC, 2), into=(COUNT, sgpr(4)))


def test_incomplete_functions_are_not_edited(reduce: tuple[Program, Facts]) -> None:
    program, facts = reduce
    function = replace(program.functions[0], incomplete="unknown opcode at 0x100")
    m = Mutator(replace(program, functions=(function,), _functions={function.code: function}), facts)
    with pytest.raises(EditConflict, match=r"test_mutator.py:\d+: .* cannot be edited: unknown opcode at 0x100"):
        m.before(function.blocks[0].instrs[0], nothing)
    empty = replace(function, blocks=())
    with pytest.raises(EditConflict, match="has no code that can be edited"):
        m.at_entry(empty, nothing)


def test_a_function_that_loops_to_its_entry_has_no_entry_point(reduce: tuple[Program, Facts]) -> None:
    program, facts = reduce
    function = program.functions[0]
    first, *rest = function.blocks
    looping = replace(function, blocks=(first, *(replace(b, successors=(first.address,)) for b in rest)))
    with pytest.raises(EditConflict, match="loops back to its first instruction"):
        Mutator(program, facts).at_entry(looping, nothing)


class Counting(Tool):
    total = Variable(u64)
    spare = Variable(u32)
    count = WaveVariable(u64)

    def instrument(self, m: Mutator) -> None:
        for block in m.functions()[0].blocks:
            m.at_block(block, add, self.count, len(block.instrs), into=self.count, anywhere=True)


def test_visit(reduce: tuple[Program, Facts]) -> None:
    edits = visit(Counting(), *reduce)
    assert edits.variables == Counting.variables and edits.wave_variables == (Counting.count,)
    assert len(edits.insertions) == len(reduce[0].functions[0].blocks)
    with pytest.raises(ToolError, match="does not say what to instrument"):
        visit(Tool(), *reduce)


RANGES = [(0, 1, ""), (1, 5, ""), (3, 3, ""), (4, 30, ""), (20, 4096, ""), (0, 4096, "memory | loop & vector_alu"),
          (4, 30, "index != 9 & index != 17"), (3, 4096, "call | end")]


@pytest.mark.parametrize(("begin", "end", "text"), RANGES)
@pytest.mark.parametrize("name", ["device_call", "bitonic_sort"])
def test_chosen_instructions_of_each_function(name: str, begin: int, end: int, text: str) -> None:
    """All that the Mutator gives has the chosen instructions, each once; what is called at others is not recorded."""
    m = Mutator(*read(name), Selection(instr_begin=begin, instr_end=end, instrument=text))
    for function in m.functions():
        chosen = list(filter(compile_filter(text, m.program), list(function.instrs)[begin:end]))
        given = [b.instrs for b in m.blocks(function)]
        stretches = [s.instrs for block in m.blocks(function) for s in m.stretches(block)]
        runs = [r.instrs for block in function.blocks for r in m.runs(block)]
        regions = [region.instrs for region in m.regions(function)]
        for parts in (given, stretches, runs, regions, [m.instrs(function)] if chosen else []):
            assert all(parts) and sorted(i.pc for part in parts for i in part) == [i.pc for i in chosen]
        for instr in function.instrs:
            m.before(instr, nothing)
        for block in m.blocks(function):
            m.at_block(block, flush, TOTAL, COUNT, anywhere=True)
        for region in m.regions(function):
            m.at_region(region, flush, TOTAL, COUNT)
        recorded = [i for i in m.edits().insertions if m.program.function_of(i.instr) is function]
        assert [i.instr for i in recorded if i.hook is nothing] == chosen
        assert {instr for i in recorded for instr, _ in i.places} <= set(chosen)


def test_entry_and_exit_are_there_whatever_is_chosen(reduce: tuple[Program, Facts]) -> None:
    m = Mutator(*reduce, Selection(instr_begin=2, instr_end=3))
    m.at_entry(m.kernels[0], nothing)
    m.at_exit(m.kernels[0], flush, TOTAL, COUNT)
    assert len(m.edits().insertions) == 2
    m = Mutator(*reduce, Selection(instr_begin=2, instr_end=2))
    m.at_exit(m.kernels[0], flush, TOTAL, COUNT)
    assert m.edits().insertions == ()


def test_a_block_that_is_cut_is_not_counted_as_a_whole(reduce: tuple[Program, Facts]) -> None:
    m = Mutator(*reduce, Selection(instr_begin=2, instr_end=6))
    first, *_, last = blocks(m)
    with pytest.raises(EditConflict, match="choose only a part of this; take blocks from Mutator.blocks"):
        m.at_block(first, add, COUNT, len(first.instrs), into=COUNT)
    m.at_block(last, add, COUNT, len(last.instrs), into=COUNT)  # outside: not recorded
    assert m.edits().insertions == ()
