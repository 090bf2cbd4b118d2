"""A tool's notes are kept without the program that they name, and are the same when they are read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from luthier_py import Tool, Variable, WaveVariable, u32, u64
from luthier_py.binary.loader import load
from luthier_py.host.worker.instrument.notes import Unkept, pack_notes, unpack_notes
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import Program, lift
from luthier_py.samples import sample


class Noted(Tool):
    """Has variables of both kinds."""

    total = Variable(u64)
    first = WaveVariable(u32)
    second = WaveVariable(u32)


TOOL = Noted()
VARIABLES = {variable.name: variable for variable in TOOL.variables}


def program_of(name: str) -> Program:
    return lift(load(sample(name).path.read_bytes(), name))


def again(notes: Any, program: Program) -> Any:
    return unpack_notes(pack_notes(notes, program, TOOL, VARIABLES), lambda: program, TOOL, VARIABLES)()


def test_what_notes_name_is_what_is_there_then() -> None:
    program = program_of("device_call")
    for function in program.functions:
        for block in function.blocks:
            for part in (program, program.obj, function, block, block.instrs[-1]):
                found = again({"of": [part, 7]}, program)["of"]
                assert found == [part, 7] and type(found[0]) is type(part)
    assert again(program, program) is program and again(program.obj, program) is program.obj
    assert all(again(each, program) is each for each in (TOOL, Noted.total, Noted.first, Noted.second))
    stranger = type("Stranger", (Tool,), {"total": Variable(u64)})
    found = again(stranger.total, program)
    assert found.name == "Stranger.total" and found is not Noted.total


def test_a_program_is_asked_for_only_where_notes_name_it() -> None:
    program, asked = program_of("saxpy"), list[None]()

    def ask() -> Program:
        asked.append(None)
        return program

    for notes, times in (((1, TOOL, Noted.total), 0), ((program.functions[0], program.obj), 1)):
        data = pack_notes(notes, program, TOOL, VARIABLES)
        read = unpack_notes(data, ask, TOOL, VARIABLES)
        assert data[0] == bool(times) and not asked
        assert read() == read() == notes and len(asked) == times


def test_what_cannot_be_had_again_is_not_kept() -> None:
    program, other = program_of("saxpy"), program_of("vector_add")
    block = max(program.functions[0].blocks, key=lambda each: len(each.instrs))
    for notes, why in (
        (replace(block, instrs=block.instrs[:1]), "a part of a block is not kept"),
        (other, "another program is not kept"), (other.obj, "another program is not kept"),
        (analyse(program), "facts of a program are not kept"), (lambda: 0, None),
    ):
        with pytest.raises(Unkept, match=why):
            pack_notes([notes], program, TOOL, VARIABLES)
    with pytest.raises(Unkept):
        unpack_notes(b"\0damaged", lambda: program, TOOL, VARIABLES)
