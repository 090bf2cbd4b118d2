"""Damaged code objects: printed, instrumented with each tool, proved and linked."""

from __future__ import annotations

import random
from pathlib import Path

from fuzzer import Case, Fuzzer
from object_mutations import like, mutated
from seed_objects import seeds

from luthier_py.binary.loader import load
from luthier_py.features.code.disassembly import disassemble, disassemble_blocks
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

TOOLS = {
    "none": {}, "instr_count": {}, "opcode_histogram": {}, "lds_bank_conflicts": {},
    "instr_count-by-instruction": {"mode": "instruction"}, "instr_count-active": {"EXCLUDE_PRED_OFF": "1"},
    "instr_count-threads": {"COUNT_WARP_LEVEL": "0"},
}
PRINTED = "printed"


def _make(rng: random.Random) -> Case:
    return Case(mutated(rng), rng.choice((*TOOLS, PRINTED)))


def _trial(case: Case, folder: Path) -> None:
    if case.how == PRINTED:
        obj = load(case.data)
        for lines in (disassemble, disassemble_blocks):
            assert all("\n" not in line for line in lines(obj, None)), "a line of several lines"
        return
    made = instrument(case.data, load_tool(case.how.partition("-")[0], TOOLS[case.how]), keep_going=True)
    if case.how == "none":
        assert made.data == case.data, "a tool that inserts nothing changed the object"
    load(made.data)


def _prepare(folder: Path) -> None:
    """Hooks are compiled, and tables read, before trials are forked."""
    for how in TOOLS:
        _trial(Case(seeds()[0].data, how), folder)
    for seed in {seed.isa: seed for seed in seeds()}.values():
        _trial(Case(seed.data, PRINTED), folder)


FUZZER = Fuzzer("pipeline", _make, _trial, _prepare, like, False)
