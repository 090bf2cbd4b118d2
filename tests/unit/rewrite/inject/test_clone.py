"""What addresses that code makes become in a clone."""

from __future__ import annotations

from synthetic import Row, build

from luthier_py.isa import sgpr
from luthier_py.program.ir import lift
from luthier_py.rewrite.inject.clone import clone_function
from luthier_py.rewrite.inject.items import Referent, Single

END: Row = ("s_endpgm",)
RETURN: Row = ("s_setpc_b64", sgpr(30, 2))


def made(name: str, last: Row) -> list[Row]:
    return [("s_getpc_b64", sgpr(6, 2)), ("s_add_u32", sgpr(6), sgpr(6), name),
            ("s_addc_u32", sgpr(7), sgpr(7), name), last]


def targets(rows: list[Row], **functions: list[Row]) -> tuple[list[Referent], dict[str, int]]:
    """What low halves of addresses are of, in order; and where functions and blocks are."""
    program = lift(build({"k": rows, **functions}))
    function = program.kernel("k").function
    clone = clone_function(program, function, "k.luthier", function.entries,
                           {each.address for each in program.functions}, {})
    found = [item.reference.target for item in clone.items if isinstance(item, Single) and item.reference is not None]
    return found[::2], {each.name: each.address for each in program.functions}


def test_a_called_function_is_the_clone_and_a_pointer_stays_the_original_s() -> None:
    """Data must not change: pointers are compared, and kept."""
    call: Row = ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2))
    keep: Row = ("s_mov_b64", sgpr(8, 2), sgpr(6, 2))
    (called, pointer), at = targets([*made("f", call), *made("f", keep), END], f=[RETURN])
    assert called == Referent(function=at["f"]) and pointer == Referent(address=at["f"])


def test_a_far_jump_goes_to_the_clone_s_block_and_the_address_of_one_stays() -> None:
    jump: Row = ("s_setpc_b64", sgpr(6, 2))
    keep: Row = ("s_mov_b64", sgpr(8, 2), sgpr(6, 2))
    (kept,), _ = targets([*made("there", keep), ("s_cbranch_scc0", "there"), END, "there:", END])
    assert kept.label is None and kept.address is not None
    (jumped,), _ = targets([*made("there", jump), "there:", END])
    assert jumped.label is not None
