"""Which rows carry the flags that are ours, not LLVM's: each list is what the manuals say (evidence in isa.errata)."""

from __future__ import annotations

import json
from functools import cache

import pytest

from luthier_py.isa import OpFlag
from luthier_py.isa.encoding.table import Row, load_table

FROM_LANES = {
    "V_PERMLANE16_B32", "V_PERMLANEX16_B32", "V_PERMLANE64_B32", "V_PERMLANE16_VAR_B32", "V_PERMLANEX16_VAR_B32",
    "V_PERMLANE16_SWAP_B32", "V_PERMLANE32_SWAP_B32", "V_PERMLANE_BCAST_B32", "V_PERMLANE_DOWN_B32",
    "V_PERMLANE_UP_B32", "V_PERMLANE_XOR_B32",
}
LISTS = {
    OpFlag.READS_FIRST_LANE: {"V_READFIRSTLANE_B32"},
    OpFlag.MAY_STOP: {"S_TRAP", "S_SETHALT"},
    OpFlag.FORKS: {"S_CBRANCH_G_FORK", "S_CBRANCH_I_FORK", "S_CBRANCH_JOIN"},
    OpFlag.GETS_PC: {"S_GETPC_B64"},
    OpFlag.SETS_PC: {"S_SETPC_B64"},
    OpFlag.WRITES_HIGH_HALF: {"V_MAD_MIXHI_F16", "V_FMA_MIXHI_F16", "V_FMA_MIXHI_BF16"},
    OpFlag.CLAUSE: {"S_CLAUSE"},
}


@cache
def all_rows() -> tuple[Row, ...]:
    """Of all targets: each table has the records of all."""
    return tuple(row._replace(flags=OpFlag(row.flags)) for row in (
        Row(*json.loads(line)) for line in load_table("gfx90a", 64).records.row_lines))


@pytest.mark.parametrize("flag", LISTS, ids=lambda flag: flag.name)
def test_rows_of_a_flag_are_those_listed(flag: OpFlag) -> None:
    assert {op.base for op in all_rows() if flag in op.flags} == LISTS[flag]
    assert all(flag in op.flags for op in all_rows() if op.base in LISTS[flag])


def test_what_reads_other_lanes_are_permutes_dpp_and_images() -> None:
    for op in all_rows():
        expected = (op.base in FROM_LANES or op.base.startswith("V_CVT_SCALE_PK") or OpFlag.DPP in op.flags
                    or op.format in ("MIMG", "VIMAGE", "VSAMPLE"))
        assert (OpFlag.READS_OTHER_LANES in op.flags) == expected, op.record
    assert {op.base for op in all_rows()} >= FROM_LANES


def test_permutes_may_keep_lanes_of_their_destination() -> None:
    assert all(op.partial for op in all_rows() if op.base in FROM_LANES)


def test_where_a_mnemonic_says_that_lanes_are_permuted_the_flag_does_too() -> None:
    """A new one is looked at: gfx1250's index generator only computes."""
    named = {op.base for op in all_rows() if "PERMLANE" in op.base}
    assert named - FROM_LANES == {"V_PERMLANE_IDX_GEN_B32"}
