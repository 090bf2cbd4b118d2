"""Discovery of blocks: from entries along branches, and what makes a function incomplete."""

from __future__ import annotations

from dataclasses import replace

import pytest
from synthetic import Row, build

from luthier_py.base.errors import Invalid
from luthier_py.isa import EXEC, instruction_set, sgpr, target, vgpr
from luthier_py.program.ir import Block, Ending, Function, Program, lift, verify

END: Row = ("s_endpgm",)
NOP: Row = ("s_nop", 0)
UNDEFINED = b"\xff\xff\xff\xff"


def lifted(*rows: Row, **functions: list[Row]) -> Program:
    program = lift(build({"k": list(rows), **functions}))
    verify(program)
    return program


def kernel(*rows: Row) -> Function:
    return lifted(*rows).kernel("k").function


def shape(function: Function) -> list[tuple[int, int, Ending, list[int]]]:
    """Per block: first instruction, instructions, ending, successors; addresses relative to the function."""
    return [
        (b.address - function.address, len(b.instrs), b.ending, [s - function.address for s in b.successors])
        for b in function.blocks
    ]


def test_straight_code_is_one_block() -> None:
    function = kernel(NOP, ("v_mov_b32", vgpr(0), 1), END)
    assert shape(function) == [(0, 3, Ending.END, [])]
    assert function.kernel and function.incomplete is None and function.size_bytes == 12


def test_a_conditional_branch_has_its_target_first() -> None:
    function = kernel(("s_cbranch_scc0", "end"), NOP, "end:", END)
    assert shape(function) == [
        (0, 1, Ending.CONDITIONAL, [8, 4]), (4, 1, Ending.FALLTHROUGH, [8]), (8, 1, Ending.END, []),
    ]


def test_a_loop() -> None:
    function = kernel(NOP, "again:", NOP, ("s_cbranch_scc1", "again"), END)
    assert shape(function) == [
        (0, 1, Ending.FALLTHROUGH, [4]), (4, 2, Ending.CONDITIONAL, [4, 12]), (12, 1, Ending.END, []),
    ]


def test_a_branch_to_the_next_instruction_has_one_successor() -> None:
    function = kernel(("s_cbranch_scc1", "next"), "next:", END)
    assert shape(function) == [(0, 1, Ending.CONDITIONAL, [4]), (4, 1, Ending.END, [])]


def test_padding_is_not_decoded() -> None:
    function = kernel(("s_branch", "end"), UNDEFINED, UNDEFINED, "end:", END, UNDEFINED)
    assert shape(function) == [(0, 1, Ending.BRANCH, [12]), (12, 1, Ending.END, [])]
    assert function.incomplete is None


def test_block_lookup_by_address() -> None:
    function = kernel(NOP, ("s_branch", "end"), UNDEFINED, "end:", END)
    assert function.block(function.address + 4) is function.blocks[0]
    with pytest.raises(Invalid):
        function.block(function.address + 8)


@pytest.mark.parametrize(("rows", "reason"), [
    ((NOP, UNDEFINED, END), "no instruction at 0x1004"),
    ((NOP, NOP), "control runs off the function's end at 0x1008"),
    ((("s_cbranch_scc0", -100), END), "is outside the function"),
    ((("s_branch", 100),), "is outside the function"),
    ((("s_cbranch_scc0", -1), END), None),
    ((("s_mov_b32", sgpr(0), 0x12345678), ("s_cbranch_scc0", -2), END), "overlap"),
    ((("s_setpc_b64", sgpr(0, 2)),), "the indirect jump at 0x1000 may go anywhere"),
    ((("s_cbranch_scc0", 0),), "is outside the function"),
    ((("s_cbranch_g_fork", sgpr(0, 2), sgpr(2, 2)), END), "forks control"),
])
def test_what_cannot_be_followed_is_incomplete(rows: tuple[Row, ...], reason: str | None) -> None:
    function = lifted(*rows).kernel("k").function
    assert reason in (function.incomplete or "") if reason else function.incomplete is None


@pytest.mark.parametrize(("made", "reason"), [
    ("s_add_nc_u64 s[10:11], s[10:11], lit64(0x10)", None),
    ("s_sub_nc_u64 s[10:11], s[10:11], lit64(0xfffffffffffffff0)", "may go anywhere"),
])
def test_a_difference_of_64_bits_makes_no_address(made: str, reason: str | None) -> None:
    """Copies have another literal in its place, which is a distance to be added."""
    isa = instruction_set(target("gfx1250"))
    rows = [isa.parse(text).raw for text in ("s_get_pc_i64 s[10:11]", made, "s_set_pc_i64 s[10:11]", "s_endpgm")]
    function = lift(build({"k": rows}, gpu="gfx1250", wave_size=32)).kernel("k").function
    assert reason in (function.incomplete or "") if reason else function.incomplete is None


def test_a_literal_that_is_jumped_into_may_also_be_no_instruction() -> None:
    literal: Row = ("v_mov_b32", vgpr(0), 0x7FFFFFF0)
    function = kernel(("s_mov_b32", sgpr(0), 0xFFFFFFFF), literal, ("s_cbranch_scc0", -2), END)
    assert function.incomplete is not None and function.blocks == ()


def test_an_incomplete_kernel_does_not_hide_others() -> None:
    program = lift(build({"broken": [UNDEFINED], "k": [NOP, END]}, kernels=("broken", "k")))
    verify(program)
    assert program.kernel("broken").function.incomplete
    assert program.kernel("k").function.incomplete is None


def test_only_what_is_chosen_is_lifted() -> None:
    obj = build({"a": [END], "b": [END]}, kernels=("a", "b"))
    program = lift(obj, ["b"])
    assert [function.name for function in program.functions] == ["b"]
    with pytest.raises(Invalid, match="no kernel a was lifted"):
        program.kernel("a")
    with pytest.raises(Invalid, match="no kernel c"):
        lift(obj, ["c"])


def test_no_kernels_is_an_empty_program() -> None:
    program = lift(build({"k": [END]}), [])
    verify(program)
    assert program.functions == () and program.isa.target.name == "gfx90a"


def test_kernels_that_share_code_share_the_function() -> None:
    obj = build({"a": [END]}, kernels=("a",))
    record = obj.kernels[0]
    alias = type(record)("b", "b.kd", 0, record.descriptor, record.entry, {}, ())
    program = lift(replace(obj, kernels=(record, alias), _kernels={"a": record, "b": alias}))
    verify(program)
    assert program.kernel("a").function is program.kernel("b").function


def test_kernarg_preload_has_a_second_entry() -> None:
    rows: list[Row] = [("s_branch", "loaded"), *[NOP] * 63, "loaded:", ("v_mov_b32", vgpr(0), 0), END]
    function = lift(build({"k": rows}, preload=2)).kernel("k").function
    assert function.entries == (function.address, function.address + 256)
    assert [block.address - function.address for block in function.blocks] == [0, 256]
    assert lift(build({"k": rows})).kernel("k").function.entries == (function.address,)
    newest = lift(build({"k": [NOP, END]}, gpu="gfx1250", wave_size=32, preload=2)).kernel("k").function
    assert newest.entries == (newest.address,), "all firmware for gfx1250 preloads"


def test_without_symbol_sizes_the_next_function_is_the_end() -> None:
    program = lift(build({"k": [NOP, NOP], "f": [END]}, sizes=False))
    assert program.kernel("k").function.incomplete == "control runs off the function's end at 0x1100"


def test_wave_size_comes_from_the_descriptor() -> None:
    rows: list[Row] = [("s_and_saveexec_b32", sgpr(0), sgpr(2)), END]
    program = lift(build({"k": rows}, gpu="gfx1030", wave_size=32))
    verify(program)
    assert program.kernel("k").function.isa is instruction_set(target("gfx1030"), 32)
    instr = program.kernel("k").function.blocks[0].instrs[0]
    assert instr.inst.writes.sgpr >> EXEC & 3 == 1


def test_program_points_are_identities() -> None:
    program = lifted(NOP, NOP, END)
    function = program.kernel("k").function
    first, second, _ = function.instrs
    assert first != second and first.raw == second.raw
    assert program.function_of(first) is function and program.block_of(first) is function.blocks[0]


def test_verify_finds_what_is_wrong() -> None:
    program = lifted(("s_cbranch_scc0", "end"), NOP, "end:", END)
    function = program.kernel("k").function
    first, *rest = function.blocks
    for wrong in (
        Block(first.address, first.instrs, first.successors[:1], first.ending),
        Block(first.address, first.instrs, first.successors, Ending.END),
        Block(first.address, rest[0].instrs, first.successors, first.ending),
        Block(first.address + 4, first.instrs, first.successors, first.ending),
    ):
        with pytest.raises(AssertionError, match="the IR is inconsistent: .*: kernel k, pc 0x"):
            verify(with_blocks(program, function, (wrong, *rest)))


def with_blocks(program: Program, function: Function, blocks: tuple[Block, ...]) -> Program:
    changed = Function(function.name, function.address, True, function.isa, function.entries, function.code, blocks, ())
    kernels = tuple(type(k)(k.name, k.record, changed) for k in program.kernels)
    return Program(program.obj, program.isa, kernels, (changed,), frozenset(), {changed: ()}, {function.code: changed})


def test_data_that_looks_like_the_start_of_an_instruction_does_not_hide_the_next_one() -> None:
    takes_a_literal = bytes.fromhex("ff0080be")  # the first half of s_mov_b32 s0, literal
    function = kernel(("s_branch", "go"), takes_a_literal, "go:", NOP, END)
    assert function.incomplete is None
    assert shape(function) == [(0, 1, Ending.BRANCH, [8]), (8, 2, Ending.END, [])]
    assert [instr.pc - function.address for instr in function.instrs] == [0, 8, 12] and len(function.code) == 3


def test_code_is_what_blocks_have_and_no_more() -> None:
    function = kernel(("s_branch", "go"), NOP, NOP, "go:", NOP, END)
    assert [(block.start, block.stop) for block in function.blocks] == [(0, 1), (1, 3)]
    assert len(function.code) == 3


def test_an_instr_is_equal_by_where_it_is() -> None:
    block = kernel(NOP, NOP, END).blocks[0]
    assert block.instrs[0] == next(iter(block.instrs)) and hash(block.instrs[0]) == hash(block.instrs[:1][0])
    assert block.instrs[0] != block.instrs[1] and block.instrs[0].inst is block.instrs[1].inst
    assert block.instrs[-1] in block.instrs and kernel(NOP, NOP, END).blocks[0].instrs[0] not in block.instrs
