"""Places where injection is delicate, each as a small kernel that is instrumented and run."""

from __future__ import annotations

import pytest
from emulated import ISA, LANES, Bench, code_object, from_first_entry
from shown_kernels import END, POINTERS, WORDS, A, S, V, everywhere, full, instrumented, note_lanes, stores, words

from luthier_py import Mutator, Variable, WaveVariable, f32, hook, ptr, u32, u64
from luthier_py.base.errors import EditConflict, OutOfRegisters, Unsupported
from luthier_py.binary.loader import load
from luthier_py.intrinsics import atomic_add, lane_id, popcount
from luthier_py.isa import EXEC, M0, VCC, OpFlag
from luthier_py.rewrite.inject import apply, policies
from luthier_py.rewrite.inject.policies import Private


@pytest.fixture(scope="module")
def bench():
    return Bench(bytes(range(64)), bytes(4 * WORDS * LANES))


@hook
def add(count: u64) -> u64:
    return count + u64(1)


@hook(lanes="one")
def flush(total: ptr[u64], count: u64) -> None:
    atomic_add(total, count)


@hook
def note(slot: ptr[u32], x: u32) -> None:
    atomic_add(slot, x)


@hook(lanes="one")
def count_mask(slot: ptr[u64], mask: u64) -> None:
    atomic_add(slot, u64(popcount(mask)))


@hook(lanes="one")
def count_one(total: ptr[u64]) -> None:
    atomic_add(total, u64(100))


@hook
def count_active(total: ptr[u64]) -> None:
    atomic_add(total, u64(1))


@hook
def swap(a: u32, b: u32) -> tuple[u32, u32]:
    return b, a


def count_everything(tool, m: Mutator) -> None:
    for function in m.functions():
        for instr in function.instrs:
            m.before(instr, add, tool.count, into=tool.count)
    for kernel in m.kernels:
        m.at_exit(kernel, flush, tool.total, tool.count)


COUNTERS = {"total": Variable(u64, name="total"), "count": WaveVariable(u64)}


def test_a_dead_register_that_a_hook_reads_is_not_scratch_for_another_one(bench):
    """v3 is overwritten before the program reads it: but at the marker a hook does."""
    rows = [*POINTERS, ("v_mov_b32", V(3), 7), ("s_nop", 1), ("s_nop", 7), ("v_mov_b32", V(3), 1), END]
    data = code_object({"k": rows})

    def visit(tool, m):
        for instr in m.functions()[0].instrs:
            if instr.inst.op.base == "S_NOP":
                m.before(instr, everywhere, tool.rows)
                if instr.inst["simm16"].value == 7:
                    m.before(instr, note_lanes, tool.slot, V(3))

    tool, made = instrumented(data, visit, rows=Variable(u64, LANES, name="rows"), slot=Variable(u32, name="slot"))
    ran = bench.run(made.data, "k.luthier")
    assert ran[tool.slot] == 7 * LANES and ran[tool.rows] == (2,) * LANES


def test_anywhere_with_exec_means_where_exec_is_the_same(bench):
    data = code_object({"k": [
        *POINTERS, ("s_cmp_eq_u32", S(0), S(0)), ("s_cselect_b32", S(8), 1, 0), ("s_mov_b64", S(EXEC, 2), 1), END,
    ]})
    tool, made = instrumented(
        data, lambda tool, m: m.at_block(m.functions()[0].blocks[0], count_mask, tool.lanes, S(EXEC, 2), anywhere=True),
        lanes=Variable(u64, name="lanes"))
    assert bench.run(made.data, "k.luthier")[tool.lanes] == LANES


@pytest.mark.parametrize("args", [(8, 9), (9, 8)])
@pytest.mark.parametrize("into", [(8, 9), (9, 8), (8, 10)])
def test_results_never_overwrite_each_other(bench, args, into):
    data = code_object({"k": [
        *POINTERS, *(("s_mov_b32", S(i), i) for i in (8, 9, 10)), ("s_nop", 7), *stores(S(8), S(9), S(10)), END,
    ]})

    def visit(tool, m):
        marker = next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP")
        m.before(marker, swap, *map(S, args), into=tuple(map(S, into)))

    ran = bench.run(instrumented(data, visit)[1].data, "k.luthier")
    expected = {8: 8, 9: 9, 10: 10} | dict(zip(into, reversed(args), strict=True))
    assert [words(ran, n)[0] for n in range(3)] == list(expected.values())


def test_kernels_that_start_at_either_entry_clear_wave_variables_once(bench):
    """Kernarg preload: the first entry loads what the second one has, 256 bytes on; the kernel loops to the second."""
    head = [("s_load_dwordx2", S(6, 2), S(4, 2), 0), ("s_waitcnt", 0), ("s_branch", "main")]
    rows = [
        *head, *[("s_nop", 0)] * 60, "main:", ("s_add_u32", S(20), S(20), 1), ("s_cmp_lt_u32", S(20), 3),
        ("s_cbranch_scc1", "main"), END,
    ]
    data = code_object({"k": [("s_mov_b32", S(20), 0), *rows]}, preload=2)
    assert len(data)
    tool, made = instrumented(data, count_everything, **COUNTERS)
    first = from_first_entry(made.data, "k.luthier"), from_first_entry(data, "k")
    assert bench.run(first[0], "k.luthier")[tool.total] == bench.run(first[1], "k").profile.total == 4 + 3 * 3 + 1
    assert bench.run(made.data, "k.luthier")[tool.total] == bench.run(data, "k").profile.total


def test_the_second_entry_of_a_clone_is_256_bytes_behind_the_first(bench):
    rows = [("s_nop", 0), ("s_branch", "main"), *[("s_nop", 0)] * 62, "main:", ("s_nop", 1), END]
    data = code_object({"k": rows}, preload=2)
    tool, made = instrumented(data, count_everything, **COUNTERS)
    assert bench.run(made.data, "k.luthier")[tool.total] == bench.run(data, "k").profile.total == 2
    assert bench.run(from_first_entry(made.data, "k.luthier"), "k.luthier")[tool.total] == 4


def test_kernels_that_share_code_share_a_clone(bench):
    data = code_object({"body": [("s_nop", 0), ("s_nop", 0), END]}, kernels={"one": "body", "two": "body"})
    tool, made = instrumented(data, count_everything, **COUNTERS)
    for name in ("one", "two"):
        assert bench.run(made.data, f"{name}.luthier")[tool.total] == 3
    assert len({m.chunk for m in made.patched.maps} & {"one.luthier", "two.luthier"}) == 1


def test_accumulation_registers_move_up_with_more_vector_registers(bench):
    """One register file: AGPRs start where VGPRs end, and a hook needs one more VGPR than the kernel has."""
    rows = [*POINTERS, *(("v_mov_b32", V(i), i) for i in range(2, 8)), ("v_accvgpr_write_b32", A(3), 33), ("s_nop", 7),
            ("s_nop", 7), *(("v_add_u32", V(2), V(2), V(i)) for i in range(3, 8)), ("v_accvgpr_read_b32", V(3), A(3)),
            ("v_lshlrev_b32", V(4), 2, V(0)), ("global_store_dword", V(4), V(2), S(2, 2)),
            ISA.make("global_store_dword", V(4), V(3), S(2, 2), offset=4 * LANES).raw, END]
    data = code_object({"k": rows}, vgprs=8, agprs=4)
    tool, made = instrumented(
        data, lambda tool, m: [m.before(i, everywhere, tool.rows) for i in m.functions()[0].instrs],
        rows=Variable(u64, LANES, name="rows"))
    descriptor = load(made.data).kernel("k.luthier").descriptor
    assert descriptor.accum_offset == 12 and descriptor.vgpr_count(ISA.target) >= 16
    assert load(made.data).kernel("k.luthier").metadata[".vgpr_count"] == 16
    ran = bench.run(made.data, "k.luthier")
    assert words(ran, 0)[5] == sum(range(2, 8)) and words(ran, 1)[5] == 33
    assert ran[tool.rows] == (len(made.edits.insertions),) * LANES


@pytest.fixture
def no_spills(monkeypatch):
    """Kernels that have no room for registers of hooks elsewhere."""
    monkeypatch.setattr(policies, "accumulators", lambda *args: ())
    monkeypatch.setattr(apply, "private_memory", lambda program, component, frame_bytes: Private(0, "it has no room"))


def test_a_place_where_registers_are_dead_goes_before_one_that_costs_waves(bench, no_spills):
    """64 vector registers are all that eight waves leave each; at the end of the block they are dead."""
    rows = [*POINTERS, *full(V, 64), END]
    data = code_object({"k": rows}, vgprs=64)
    tool, made = instrumented(
        data, lambda tool, m: m.at_block(m.functions()[0].blocks[0], everywhere, tool.rows, anywhere=True),
        rows=Variable(u64, LANES, name="rows"))
    (report,) = made.patched.report
    assert report.before.waves == report.after.waves == 8
    assert bench.run(made.data, "k.luthier")[tool.rows] == (1,) * LANES
    tool, made = instrumented(
        data, lambda tool, m: m.before(list(m.functions()[0].instrs)[70], everywhere, tool.rows),
        rows=Variable(u64, LANES, name="rows"))
    assert made.patched.report[0].after.waves < 8  # there is no other place for this one


def test_a_full_register_file_is_refused_with_the_place(no_spills):
    data = code_object({"k": [*full(V, 256), END]}, vgprs=256)

    def visit(tool, m):
        marker = next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP")
        m.before(marker, everywhere, tool.rows)

    says = (r"free VGPRs.*for fewer waves, with .*: 256 are live.*choose another place.*no room for more: it has "
            r"no room \[kernel k, pc 0x.*`s_nop 7`\]")
    with pytest.raises(OutOfRegisters, match=says):
        instrumented(data, visit, rows=Variable(u64, LANES, name="rows"))


def test_a_register_that_the_kernel_cannot_have_is_refused_by_name():
    """A work-group of 1,024 leaves each wave 128 on this target."""
    rows = [*POINTERS, ("s_nop", 7), END]
    with pytest.raises(OutOfRegisters, match=r"hook note_lanes names v200, and kernel k has no such register.*1024"):
        instrumented(code_object({"k": rows}),
                     lambda tool, m: m.at_entry(m.kernels[0], note_lanes, tool.slot, V(200)), slot=Variable(u32))


@pytest.mark.parametrize("lanes", [1, -1, 0xF0])
def test_the_last_calls_before_the_end_have_the_lanes_that_the_application_had(bench, lanes):
    """Those of hooks for one lane and for all, with their own, may come first."""
    def visit(tool, m):
        for one in (everywhere, count_one, count_active, count_mask):
            arguments = {everywhere: (tool.rows,), count_mask: (tool.mask, S(EXEC, 2))}.get(one, (tool.total,))
            m.at_exit(m.kernels[0], one, *arguments)

    rows = [*POINTERS, ("s_mov_b64", S(EXEC, 2), lanes), END]
    tool, made = instrumented(code_object({"k": rows}), visit, rows=Variable(u64, LANES, name="rows"),
                              mask=Variable(u64), total=Variable(u64))
    ran = bench.run(made.data, "k.luthier")
    active = bin(lanes & (1 << LANES) - 1).count("1")
    assert ran[tool.rows] == (1,) * LANES and ran[tool.mask] == active and ran[tool.total] == 100 + active


def test_special_registers_that_are_live_come_back(bench):
    """SCC, VCC and M0 are set, a hook uses all of them, and then they are read."""
    @hook
    def busy(slot: ptr[u32], scc: u32, vcc: u64, m0: u32) -> None:
        n = lane_id() & u32(3)
        while n > u32(0):
            n -= u32(1)
            atomic_add(slot, u32(vcc) + scc + m0)

    rows = [*POINTERS, ("s_mov_b32", S(M0), 5), ("s_mov_b64", S(VCC, 2), 9), ("s_cmp_eq_u32", S(0), S(0)), ("s_nop", 7),
            ("s_cselect_b32", S(8), 3, 4), ("s_mov_b32", S(9), S(VCC)), ("s_mov_b32", S(10), S(M0)),
            *stores(S(8), S(9), S(10)), END]
    data = code_object({"k": rows})

    def visit(tool, m):
        marker = next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP")
        for _ in range(2):
            m.before(marker, busy, tool.slot, S(128), S(VCC, 2), S(M0))

    tool, made = instrumented(data, visit, slot=Variable(u32, name="slot"))
    ran = bench.run(made.data, "k.luthier")
    assert [words(ran, n)[0] for n in range(3)] == [3, 9, 5]
    assert ran[tool.slot] == 2 * (1 + 9 + 5) * (0 + 1 + 2 + 3) * LANES // 4


INDEXED = [("s_mov_b32", S(8), 1), ("s_set_gpr_idx_on", S(8), 1), ("v_mov_b32", V(6), V(2)), ("s_nop", 7),
           ("s_set_gpr_idx_off",)]


def test_vector_code_is_not_put_where_registers_are_indexed(bench):
    rows = [*POINTERS, ("v_mov_b32", V(3), 11), *INDEXED, *stores(V(6)), END]
    data = code_object({"k": rows})

    def at_marker(tool, m):
        marker = next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP")
        m.before(marker, everywhere, tool.rows)

    with pytest.raises(EditConflict, match=r"hook everywhere uses vector registers.*s_set_gpr_idx_on.*`s_nop 7`"):
        instrumented(data, at_marker, rows=Variable(u64, LANES, name="rows"))
    tool, made = instrumented(
        data, lambda tool, m: m.at_block(m.functions()[0].blocks[0], everywhere, tool.rows, anywhere=True),
        rows=Variable(u64, LANES, name="rows"))
    ran = bench.run(made.data, "k.luthier")
    assert words(ran, 0)[9] == 11 and ran[tool.rows] == (1,) * LANES
    tool, made = instrumented(data, count_everything, **COUNTERS)  # scalar code may go anywhere
    ran = bench.run(made.data, "k.luthier")
    assert words(ran, 0)[9] == 11 and ran[tool.total] == bench.run(data, "k").profile.total


def test_vector_code_is_not_put_where_it_may_be_skipped():
    data = code_object({"k": [("s_mov_b32", S(8), 0), ("s_setvskip", S(8), 0), ("s_nop", 7), END]})
    with pytest.raises(EditConflict, match="s_setvskip"):
        instrumented(
            data, lambda tool, m: m.before(list(m.functions()[0].instrs)[2], everywhere, tool.rows),
            rows=Variable(u64, LANES, name="rows"))


def test_vector_code_is_put_behind_the_end_of_skipping():
    """As kernels written by hand have it; the copy is checked, the emulator does not run the instruction."""
    data = code_object({"k": [("s_setvskip", S(20), 3), ("s_nop", 0), ("s_setvskip", 0, 0), ("s_nop", 7), END]})
    instrumented(
        data, lambda tool, m: m.before(list(m.functions()[0].instrs)[4], everywhere, tool.rows),
        rows=Variable(u64, LANES, name="rows"))


def address(name):
    """Rows that make the address of a function in s[40:41]."""
    low, high = S(40), S(41)
    return [("s_getpc_b64", S(40, 2)), ("s_add_u32", low, low, name), ("s_addc_u32", high, high, name)]


SWAP = ("s_swappc_b64", S(30, 2), S(40, 2))


CALLEE = [("s_add_u32", S(8), S(8), 5), ("s_setpc_b64", S(30, 2))]


def test_each_kernel_has_its_own_numbers_and_those_of_what_it_calls():
    """Not those of another one that calls the same."""
    rows = {name: [*address("f"), SWAP, *[("s_nop", 0)] * more, END] for name, more in (("one", 1), ("two", 5))}
    made = instrumented(code_object({**rows, "f": CALLEE}, kernels=("one", "two")), count_everything, **COUNTERS)[1]
    found = {row.name: row for row in made.patched.report}
    calls = {name: len(each) + len(CALLEE) + 1 for name, each in rows.items()}  # one where a wave ends
    assert {name: row.sites for name, row in found.items()} == calls
    assert {name: sum(row.schemes.values()) for name, row in found.items()} == calls
    more = [found["two"].bytes_before - found["one"].bytes_before, found["two"].bytes_after - found["one"].bytes_after]
    assert more == [4 * 4, 4 * (4 + 8)]


def test_code_between_the_parts_of_an_address(bench):
    """A call through s_getpc and adds, with hooks that use SCC between all of them."""
    rows = [*POINTERS, ("s_mov_b32", S(8), 1), *address("f"), SWAP, *stores(S(8)), END]
    data = code_object({"k": rows, "f": CALLEE})

    def visit(tool, m):
        count_everything(tool, m)
        for function in m.functions():
            for instr in function.instrs:
                m.before(instr, everywhere, tool.rows)

    tool, made = instrumented(data, visit, rows=Variable(u64, LANES, name="rows"), **COUNTERS)
    before, ran = bench.run(data, "k"), bench.run(made.data, "k.luthier")
    assert ran.buffers == before.buffers and words(ran, 0)[0] == 6
    assert ran[tool.total] == before.profile.total and ran[tool.rows] == (before.profile.total,) * LANES


def test_tail_calls_go_to_the_clone(bench):
    tail = [("s_add_u32", S(8), S(8), 2), *address("g"), ("s_setpc_b64", S(40, 2))]
    rows = [*POINTERS, ("s_mov_b32", S(8), 1), *address("f"), SWAP, *stores(S(8)), END]
    data = code_object({"k": rows, "f": tail, "g": CALLEE})
    tool, made = instrumented(data, count_everything, **COUNTERS)
    before, ran = bench.run(data, "k"), bench.run(made.data, "k.luthier")
    assert ran.buffers == before.buffers and words(ran, 0)[0] == 8 and ran[tool.total] == before.profile.total


def test_a_short_call_is_refused_by_name():
    data = code_object({"k": [("s_call_b64", S(30, 2), "f"), END], "f": CALLEE})
    with pytest.raises(Unsupported, match=r"s_call_b64.*\[kernel k, pc 0x.*`s_call_b64 s\[30:31\]"):
        instrumented(data, count_everything, **COUNTERS)


def test_wave_variables_do_not_cross_calls_of_unknown_code():
    data = code_object({"k": [*POINTERS, ("s_swappc_b64", S(30, 2), S(0, 2)), END]})
    with pytest.raises(Unsupported, match=r"what is kept for a wave does not survive this call.*`s_swappc_b64"):
        instrumented(data, count_everything, **COUNTERS)


def test_a_hook_beside_a_trap():
    data = code_object({"k": [("s_trap", 2), ("s_nop", 0), END]})
    tool, made = instrumented(data, count_everything, **COUNTERS)
    flags = [i.inst.op.flags for f in made.program.functions for i in f.instrs]
    assert made.patched.report[0].sites == len(flags) + 1 and not any(f & OpFlag.CALL for f in flags)


def test_zero_and_minus_zero_are_two_constants(bench):
    @hook(lanes="one")
    def put(slot: ptr[f32], x: f32) -> None:
        slot[0] = x

    def visit(tool, m):
        first = next(m.functions()[0].instrs)
        m.before(first, put, tool.slots[0], 0.0)
        m.before(first, put, tool.slots[1], -0.0)

    tool, made = instrumented(code_object({"k": [("s_nop", 0), END]}), visit, slots=Variable(f32, 2, name="slots"))
    assert str(bench.run(made.data, "k.luthier")[tool.slots]) == "(0.0, -0.0)"


def test_an_argument_that_nobody_needs_any_more_is_no_scratch_before_it_is_read(bench):
    """s8 is the lowest register that is free, and the hook needs a pair for an address."""
    data = code_object({"k": [
        *POINTERS, *(("s_mov_b32", S(i), i) for i in range(4, 9)), ("s_nop", 7),
        *stores(*map(S, (0, 1, 4, 5, 6, 7))), END,
    ]})

    def visit(tool, m):
        m.before(next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP"), note, tool.slot, S(8))

    tool, made = instrumented(data, visit, slot=Variable(u32, name="slot"))
    assert bench.run(made.data, "k.luthier")[tool.slot] == 8 * LANES


def test_a_hook_behind_a_load_waits_for_what_it_reads(bench):
    """The proof refuses it if it does not: the emulator's loads are there at once."""
    data = code_object({"k": [*POINTERS, ("s_load_dword", S(8), S(0, 2), 0), ("s_waitcnt", 0), END]})

    def visit(tool, m):
        m.after([i for i in m.functions()[0].instrs if i.inst.op.base.startswith("S_LOAD")][-1], note, tool.slot, S(8))

    tool, made = instrumented(data, visit, slot=Variable(u32, name="slot"))
    assert bench.run(made.data, "k.luthier")[tool.slot] == LANES * 0x03020100 % (1 << 32)
