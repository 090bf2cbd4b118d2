"""Instructions that are removed, changed, or replaced by hooks: run on the emulator, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import ISA, LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, A, S, V, everywhere, instrumented, stores, words

from luthier_py import Lane, Tool, Variable, destination, f32, f64, hook, u32, u64
from luthier_py.base.errors import EditConflict, HookError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.intrinsics import ballot
from luthier_py.isa import EXEC, M0, SCC, VCC
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import sample


@pytest.fixture(scope="module")
def bench():
    return Bench(bytes(range(64)), bytes(4 * WORDS * LANES))


@hook
def subtract(a: Lane[f32], b: Lane[f32]) -> Lane[f32]:
    return a - b


@hook
def twice(x: Lane[u32]) -> Lane[u32]:
    return x * u32(2)


@hook
def same(x: Lane[u32]) -> Lane[u32]:
    return x


@hook
def in_double(a: f32, b: Lane[f32], c: Lane[f32]) -> Lane[f32]:
    return f32(f64(a) * f64(b) + f64(c))


@hook
def plus(a: u32, b: u32) -> u32:
    return a + b


@hook
def swap(a: u32, b: u32) -> tuple[u32, u32]:
    return b, a


@hook
def minus(a: u32, b: u32) -> u32:
    return a - b


@hook
def seven() -> u32:
    return u32(7)


@hook
def nothing() -> None:
    pass


@hook
def squared(x: u32) -> u32:
    return x * x


@hook
def less(x: u64) -> u64:
    return x - u64(1)


@hook
def whole(x: u64) -> u64:
    return x + u64(1)


def found(m, base):
    return [instr for function in m.functions() for instr in function.instrs if instr.inst.op.base == base]


def outputs(name, tool):
    """What a sample leaves under a tool, with its arguments before and its reference."""
    one = sample(name)
    launch = launch_of(one)
    code = one.path.read_bytes()
    before = [np.copy(argument.data) for argument in launch.arguments]
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)
    return before, list(ran.outputs.values()), one


class Replacing(Tool):
    """Each instruction of one operation is replaced by a hook."""

    base, by = "", same

    def instrument(self, m):
        instrs = found(m, self.base)
        assert instrs
        for instr in instrs:
            m.replace(instr, self.by)


def replacing(base, by):
    return type("Replaces", (Replacing,), {"base": base, "by": by})()


def test_an_addition_that_subtracts():
    before, (got,), _ = outputs("vector_add", replacing("V_ADD_F32", subtract))
    a, b = before[:2]
    assert np.array_equal(got, (a - b).astype(np.float32)) and not np.array_equal(got, a + b)


def test_an_fma_in_double():
    """With two roundings; NumPy does the same."""
    before, (got,), one = outputs("saxpy", replacing("V_FMAC_F32", in_double))
    n, factor, x, y = before
    assert np.array_equal(got, (np.float64(factor) * x.astype(np.float64) + y.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("name", ["reduce", "mandelbrot", "bitonic_sort", "nbody", "device_call"])
def test_moves_that_a_hook_makes_instead(name):
    class Moves(Tool):
        def instrument(self, m):
            for instr in found(m, "V_MOV_B32"):
                if instr.inst.find("src0").reg is not None and instr.inst["src0"].reg.file is V(0).file:
                    m.replace(instr, same)
                else:
                    m.change(instr, isa_text(m, instr))

    def isa_text(m, instr):
        return m.program.isa.text(instr.inst).replace("_e32", "_e64")  # of another size

    before, got, one = outputs(name, Moves())
    for mine, expected in zip(got, one.reference(before), strict=True):
        assert one.agrees(mine, expected)


def test_a_store_that_is_gone():
    class NoStore(Tool):
        def instrument(self, m):
            for instr in found(m, "GLOBAL_STORE_DWORD"):
                m.remove(instr)

    before, (got,), _ = outputs("saxpy", NoStore())
    assert np.array_equal(got, before[3])


def test_another_immediate(bench):
    rows = [*POINTERS, ("v_mov_b32", V(1), 5), ("s_movk_i32", S(9), 7), ("s_add_u32", S(10), S(9), 0x12345),
            *stores(V(1), S(9), S(10)), END]

    def visit(tool, m):
        m.change(found(m, "V_MOV_B32")[0], src0=0x54321)   # a literal: it becomes longer
        m.change(found(m, "S_MOVK_I32")[0], simm16=8)
        m.change(found(m, "S_ADD_U32")[0], src1=S(9))      # and shorter

    ran = bench.run(instrumented(code_object({"k": rows}), visit)[1].data, "k.luthier")
    assert [words(ran, n)[0] for n in range(3)] == [0x54321, 8, 16]


def test_what_a_removed_instruction_wrote_is_live_before_it(bench):
    """v0 is not read before it is written again: but that is gone, so that no hook may use it meanwhile."""
    rows = [*POINTERS, ("v_mov_b32", V(29), V(0)), ("v_mov_b32", V(0), 7), ("s_nop", 1), ("v_mov_b32", V(0), 8),
            ("v_lshlrev_b32", V(30), 2, V(29)), ISA.make("global_store_dword", V(30), V(0), S(2, 2)).raw, END]

    def visit(tool, m):
        m.before(found(m, "S_NOP")[0], everywhere, tool.rows)
        m.remove(found(m, "V_MOV_B32")[2])

    tool, made = instrumented(code_object({"k": rows}), visit, rows=Variable(u64, LANES, name="rows"))
    ran = bench.run(made.data, "k.luthier")
    assert ran[tool.rows] == (1,) * LANES and set(words(ran, 0)) == {7}


def test_waits_that_count_operations_still_wait():
    """The second load is gone; `vmcnt(1)` waited for the first because of it."""
    rows = [*POINTERS, ("v_mov_b32", V(2), 0), ISA.make("global_load_dword", V(3), V(2), S(0, 2)).raw,
            ISA.make("global_load_dword", V(4), V(2), S(0, 2), offset=4).raw, ("s_waitcnt", 0x0F71),
            ("v_mov_b32", V(5), V(3)), END]

    def visit(tool, m):
        m.remove(found(m, "GLOBAL_LOAD_DWORD")[1])

    made = instrumented(code_object({"k": rows}), visit)[1]
    stand, = made.edits.instead
    assert ISA.text(stand.inst) == "s_waitcnt vmcnt(0)"


def test_calls_around_a_replaced_instruction(bench):
    """Those before it run first, then the hook in its place, then those behind it."""
    rows = [*POINTERS, ("s_mov_b32", S(9), 1), ("s_mov_b32", S(10), 2), ("s_add_u32", S(9), S(9), S(10)),
            *stores(S(9), S(10)), END]

    def visit(tool, m):
        add, = found(m, "S_ADD_U32")
        m.after(add, swap, S(9), S(10), into=(S(9), S(10)))
        m.replace(add, plus, S(9), 40)
        m.before(add, plus, S(9), S(10), into=S(9), priority=-1)
        m.before(add, plus, S(9), 100, into=S(9))

    ran = bench.run(instrumented(code_object({"k": rows}), visit)[1].data, "k.luthier")
    assert [words(ran, n)[0] for n in range(2)] == [2, 1 + 100 + 2 + 40]


def test_a_hook_without_parameters_stands_for_an_instruction(bench):
    rows = [*POINTERS, ("s_mov_b32", S(9), 1), ("s_add_u32", S(9), S(9), 2), ("s_mov_b32", S(10), 5),
            *stores(S(9), S(10)), END]

    def visit(tool, m):
        m.replace(found(m, "S_ADD_U32")[0], seven)
        m.replace(found(m, "S_MOV_B32")[1], nothing)

    ran = bench.run(instrumented(code_object({"k": rows}), visit)[1].data, "k.luthier")
    assert words(ran, 0)[0] == 7


def test_a_hook_makes_something_of_what_an_instruction_gives(bench):
    """The instruction stays; a call behind it takes its destination, and gives it another value."""
    rows = [*POINTERS, ("v_mul_u32_u24", V(5), 3, V(0)), ("s_mov_b32", S(9), 5), ("s_add_u32", S(9), S(9), 2),
            *stores(V(5), S(9)), END]

    def visit(tool, m):
        for base, made, operand in (("V_MUL_U32_U24", twice, "vdst"), ("S_ADD_U32", squared, "sdst")):
            [instr] = found(m, base)
            m.after(instr, made, destination(instr), into=instr.inst[operand].reg)

    plain, ran = (bench.run(code, name) for code, name in (
        (code_object({"k": rows}), "k"), (instrumented(code_object({"k": rows}), visit)[1].data, "k.luthier")))
    assert words(ran, 0) == tuple(2 * word for word in words(plain, 0)) and any(words(plain, 0))
    assert words(plain, 1)[0] == 7 and words(ran, 1)[0] == 49


def test_masks_by_hooks(bench):
    """VCC that a compare would write."""
    rows = [*POINTERS, ("v_mov_b32", V(1), 3), ("v_cmp_eq_u32", S(VCC, 2), 3, V(1)), ("v_mov_b32", V(2), 0),
            ("v_cndmask_b32", V(3), 5, V(2), S(VCC, 2)), *stores(V(3)), END]

    def visit(tool, m):
        compare, = found(m, "V_CMP_EQ_U32")
        m.replace(compare, whole, S(EXEC, 2), into=S(VCC, 2))  # -1 + 1: of no lane

    data = code_object({"k": rows})
    assert set(words(bench.run(data, "k"), 0)) == {0}
    assert set(words(bench.run(instrumented(data, visit)[1].data, "k.luthier"), 0)) == {5}


def test_a_flag_by_a_hook(bench):
    """SCC that a compare would write, and M0."""
    rows = [*POINTERS, ("s_mov_b32", S(9), 5), ("s_cmp_eq_u32", S(9), 5), ("s_cselect_b32", S(10), 1, 2),
            ("s_mov_b32", S(M0), 9), ("s_mov_b32", S(11), S(M0)), *stores(S(10), S(11)), END]

    def visit(tool, m):
        m.replace(found(m, "S_CMP_EQ_U32")[0], minus, S(9), 5, into=S(SCC))
        m.replace(next(i for i in found(m, "S_MOV_B32") if i.inst["sdst"].reg == S(M0)), minus, S(9), 2)

    data = code_object({"k": rows})
    bare, ran = bench.run(data, "k"), bench.run(instrumented(data, visit)[1].data, "k.luthier")
    assert [words(bare, n)[0] for n in range(2)] == [1, 9] and [words(ran, n)[0] for n in range(2)] == [2, 3]


def test_an_accumulation_register_by_a_hook(bench):
    rows = [*POINTERS, ("v_mov_b32", V(1), 21), ("v_accvgpr_write_b32", A(3), V(1)), *stores(A(3)), END]

    def visit(tool, m):
        m.replace(found(m, "V_ACCVGPR_WRITE_B32")[0], twice)

    data = code_object({"k": rows}, agprs=8)
    assert set(words(bench.run(instrumented(data, visit)[1].data, "k.luthier"), 0)) == {42}


def test_lanes_that_a_hook_makes_active(bench):
    """The compare that is gone left no lane active: the registers of lanes are kept all the same."""
    rows = [*POINTERS, ("v_mov_b32", V(29), V(0)), ("v_mov_b32", V(0), 7), ("v_cmp_ne_u32", S(VCC, 2), V(29), V(29)),
            ("s_and_saveexec_b64", S(10, 2), S(VCC, 2)), ("s_nop", 1), ("v_add_u32", V(0), 1, V(0)),
            ("s_mov_b64", S(EXEC, 2), S(10, 2)), ("v_lshlrev_b32", V(30), 2, V(29)),
            ISA.make("global_store_dword", V(30), V(0), S(2, 2)).raw, END]

    def visit(tool, m):
        m.replace(found(m, "V_CMP_NE_U32")[0], less, S(EXEC, 2), into=S(VCC, 2))
        m.before(found(m, "S_NOP")[0], everywhere, tool.rows)

    tool, made = instrumented(code_object({"k": rows}), visit, rows=Variable(u64, LANES, name="rows"))
    assert ISA.text(made.edits.instead[0].inst) == "s_mul_i32 vcc_lo, vcc_lo, 1"
    ran = bench.run(made.data, "k.luthier")
    assert words(ran, 0) == (7,) + (8,) * (LANES - 1) and ran[tool.rows] == (1,) * LANES


ROWS = [*POINTERS, ("s_mov_b32", S(9), 1), ("s_add_u32", S(9), S(9), 1), ("s_cbranch_scc1", "end"), ("s_nop", 0),
        "end:", END]
CONFLICTS = {
    "something else stands for this": lambda m: [m.remove(found(m, "S_ADD_U32")[0]), m.change(
        found(m, "S_ADD_U32")[0], src1=2)],
    "decides where control goes": lambda m: m.remove(found(m, "S_CBRANCH_SCC1")[0]),
    "waits for what others need": lambda m: m.remove(found(m, "S_WAITCNT")[0]),
    "is waited for in another way": lambda m: m.change(found(m, "S_MOV_B32")[0], "s_load_dword s9, s[4:5], 0x0"),
    "wants s9 of an instruction that": lambda m: [
        m.after(found(m, "S_ADD_U32")[0], plus, S(9), 1, into=S(10)), m.remove(found(m, "S_ADD_U32")[0])],
}


@pytest.mark.parametrize("why", CONFLICTS)
def test_edits_that_contradict_each_other(why):
    """The message has both places."""
    with pytest.raises(EditConflict, match=why) as caught:
        instrumented(code_object({"k": ROWS}), lambda tool, m: CONFLICTS[why](m))
    assert caught.value.message.count("test_instead.py:") == 1 + (" that" in why or "something" in why)


@pytest.mark.parametrize(("change", "why"), [
    ({}, "give the instruction's new text"), ({"src7": 1}, "has no operand src7"),
    ({"text": "s_nonsense"}, "s_nonsense"), ({"sdst": V(1)}, "v1"),
])
def test_changes_that_mean_nothing(change, why):
    with pytest.raises(HookError, match=why):
        instrumented(code_object({"k": ROWS}), lambda tool, m: m.change(found(m, "S_ADD_U32")[0], **change))


@hook
def odd(x: u32) -> u32:
    return x & u32(1)


def skipping(*skipped):
    """Six turns of a loop; what is skipped in odd ones."""
    return [*POINTERS, ("v_mov_b32", V(1), 0), ("v_mov_b32", V(2), 0), ("s_mov_b32", S(9), 6), "loop:", *skipped,
            ("s_sub_u32", S(9), S(9), 1), ("s_cmp_lg_u32", S(9), 0), ("s_cbranch_scc1", "loop"), *stores(V(1), V(2)),
            END]


def skip(base):
    return lambda tool, m: m.skip_if(found(m, base)[0], odd, S(9))


def test_an_instruction_that_runs_in_every_other_turn(bench):
    rows = skipping(("v_add_u32", V(1), S(9), V(1)), ("v_mul_u32_u24", V(2), 1, V(1)))
    for base, expected in (("V_ADD_U32", (6 + 4 + 2, 12)), ("V_MUL_U32_U24", (21, 6 + 5 + 4 + 3 + 2))):
        ran = bench.run(instrumented(code_object({"k": rows}), skip(base))[1].data, "k.luthier")
        assert (words(ran, 0)[0], words(ran, 1)[0]) == expected


def test_a_flag_is_kept_around_what_is_skipped(bench):
    """SCC is written before the instruction and read behind it."""
    rows = [*POINTERS, ("v_mov_b32", V(1), 4), ("s_mov_b32", S(9), 7), ("s_cmp_eq_u32", S(9), 7),
            ("v_add_u32", V(1), 1, V(1)), ("s_cselect_b32", S(10), 1, 2), *stores(V(1), S(10)), END]
    ran = bench.run(instrumented(code_object({"k": rows}), skip("V_ADD_U32"))[1].data, "k.luthier")
    assert [words(ran, n)[0] for n in range(2)] == [4, 1]


def test_loads_and_stores_that_are_skipped(bench):
    load = ISA.make("global_load_dword", V(2), V(1), S(0, 2), offset=4).raw
    rows = [*POINTERS, ("v_mov_b32", V(1), 0), ("v_mov_b32", V(2), 9), ("s_mov_b32", S(9), 1), load, ("s_waitcnt", 0),
            *stores(V(2), S(9)), END]
    number = int.from_bytes(bytes(range(4, 8)), "little")
    assert words(bench.run(code_object({"k": rows}), "k"), 0)[0] == number
    ran = bench.run(instrumented(code_object({"k": rows}), skip("GLOBAL_LOAD_DWORD"))[1].data, "k.luthier")
    assert words(ran, 0)[0] == 9 and words(ran, 1)[0] == 1
    ran = bench.run(instrumented(code_object({"k": rows}), skip("GLOBAL_STORE_DWORD"))[1].data, "k.luthier")
    assert words(ran, 0)[0] == 0 and words(ran, 1)[0] == 1
    even = code_object({"k": [row if row != ("s_mov_b32", S(9), 1) else ("s_mov_b32", S(9), 2) for row in rows]})
    ran = bench.run(instrumented(even, skip("GLOBAL_LOAD_DWORD"))[1].data, "k.luthier")
    assert words(ran, 0)[0] == number


@hook
def any_nought(x: Lane[u32]) -> u32:
    return u32(ballot(x == u32(0)) != u64(0))


def test_where_no_lane_is_active_nothing_is_skipped_for_lanes(bench):
    """What was found elsewhere does not count: the hook, which looks at lanes, is left out."""
    rows = [*POINTERS, ("s_mov_b32", S(9), 1), ("s_mov_b32", S(10), 2), ("s_movk_i32", S(9), 3),
            ("s_mov_b64", S(12, 2), S(EXEC, 2)), ("s_mov_b64", S(EXEC, 2), 0), ("s_movk_i32", S(10), 4),
            ("s_mov_b64", S(EXEC, 2), S(12, 2)), *stores(S(9), S(10)), END]

    def visit(tool, m):
        for instr in found(m, "S_MOVK_I32"):
            m.skip_if(instr, any_nought, V(0))

    ran = bench.run(instrumented(code_object({"k": rows}), visit)[1].data, "k.luthier")
    assert [words(ran, n)[0] for n in range(2)] == [1, 4]


@pytest.mark.parametrize(("base", "why"), [
    ("S_SUB_U32", "writes scc cannot be skipped"), ("S_WAITCNT", "waits for what others need"),
    ("S_CBRANCH_SCC1", "reads scc cannot be skipped"),
])
def test_what_cannot_be_skipped(base, why):
    with pytest.raises((HookError, EditConflict), match=why):
        instrumented(code_object({"k": skipping()}), skip(base))
