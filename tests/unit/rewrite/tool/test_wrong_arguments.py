"""Every parameter of what tools call gets values of other types: an object that is nothing is refused at once, with the
tool's line, and no value whatever leads to another error than LuthierError, then or when the edits are collected."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from every_case import check_all

import luthier_py
from luthier_py import LuthierError, Mutator, Reg, Variable, WaveVariable, computed, device, hook, sgpr, u32, u64, vgpr
from luthier_py.binary.loader import load
from luthier_py.program.analysis import Facts, analyse
from luthier_py.program.ir import Program, lift

DATA = Path(__file__).resolve().parents[3] / "data"
WRONG: tuple[Any, ...] = ("nonsense", "", 3.5, -1, 7, 1 << 70, None, True, [], ["x"], {}, (5,), sgpr(3), Variable, len)
NAMED = re.compile(r"^\S*test_wrong_arguments.py:\d+: ")


@hook
def one(x: u32) -> u32:
    return x


@device
def same(x: u32) -> u32:
    return x


def doubled(x: u32) -> u32:
    return x + x


class Record:
    x: u64


PARTS: dict[str, Callable[[Mutator], Any]] = {
    "m": lambda m: m,
    "kernel": lambda m: m.kernels[0],
    "function": lambda m: m.kernels[0].function,
    "loop": lambda m: m.loops(m.kernels[0].function)[0],
    "scalar": lambda m: next(i for i in m.instrs(m.kernels[0].function) if i.op.mnemonic == "s_add_i32"),
    "count": lambda m: WaveVariable(u32, name="count"),
    "memory": lambda m: m.instrs(m.kernels[0].function, "global & load")[0],
    "block": lambda m: m.blocks(m.kernels[0].function)[0],
    "edge": lambda m: m.edges(m.kernels[0].function)[0],
    "stretch": lambda m: m.stretches(m.blocks(m.kernels[0].function)[0])[0],
    "region": lambda m: m.regions(m.kernels[0].function)[0],
    "counted": lambda m: m.counting(m.kernels[0].function).counters[0],
    "branch": lambda m: m.instrs(m.kernels[0].function, "branch & conditional")[0],
}


class Parts(dict[str, Any]):
    """A mutator, and one of each thing that it gives, made when it is asked for."""

    def __init__(self, program: Program, facts: Facts) -> None:
        super().__init__(m=Mutator(program, facts))

    def __missing__(self, name: str) -> Any:
        self[name] = made = PARTS[name](self["m"])
        return made


def call(at: str, **more: str) -> dict[str, str]:
    """Arguments of a method that calls hooks: what stands for which, as names of parts or Python."""
    return {at.partition(":")[0]: at.partition(":")[2], "hook": "one", "args": "(1,)", "into": "count", "priority": "0",
            **more}


METHODS: dict[str, dict[str, str]] = {
    "functions": {"kernel": "kernel"},
    "instrs": {"function": "function", "where": "'memory'"},
    **{name: {"function": "function"} for name in ("blocks", "regions", "edges", "loops", "calls")},
    "counting": {"function": "function", "known": "()", "edges": "False"},
    **{name: {"block": "block"} for name in ("stretches", "runs")},
    "components": {},
    "spare_scalars": {"kernels": "[kernel]"},
    "before": call("instr:scalar"), "after": call("instr:scalar"), "at_counted": call("counted:counted"),
    "at_block": call("block:block", anywhere="False"), "at_stretch": call("stretch:stretch", anywhere="False"),
    "at_region": call("region:region"), "at_edge": call("edge:edge"), "at_loop_entry": call("loop:loop"),
    "at_back_edge": call("loop:loop"), "at_loop_exit": call("loop:loop"), "at_entry": call("where:kernel"),
    "at_exit": call("where:kernel"),
    "remove": {"instr": "scalar"},
    "change": {"instr": "scalar", "text": "'s_add_i32 s5, s5, 17'"},
    "insert": {"text": "'s_nop 0'", "before": "scalar", "after": "None", "writes": "()", "priority": "0"},
    "replace": {"instr": "scalar", "hook": "one", "args": "(1,)", "into": "scalar.inst['sdst'].reg"},
    "skip_if": {"instr": "memory", "hook": "one", "args": "(1,)"},
}
FUNCTIONS: dict[str, dict[str, str]] = {
    "source": {"instr": "scalar", "which": "1", "dword": "0"},
    "destination": {"instr": "scalar", "which": "0", "dword": "0"},
    "address": {"instr": "memory", "element": "0"},
    **{name: {"instr": "memory"} for name in ("bounds", "access_bytes", "access_kind", "active_lanes", "site_id",
                                              "opcode_id")},
    "taken_lanes": {"instr": "branch"},
    "kernel_argument": {"kernel": "kernel", "which": "0", "type": "None", "dword": "0"},
    "hardware_register": {"kernel": "kernel", "name": "'HW_ID'"},
    **{name: {"axis": "'x'"} for name in ("workgroup_id", "workgroup_size", "grid_size", "workitem_id")},
    "wave_in_group": {},
    "computed": {"function": "same", "inputs": "(1,)"},
    "Variable": {"type": "u32", "length": "2", "name": "'v'", "initial": "[3, 4]"},
    "LookupTable": {"type": "u32", "values": "[3, 4]", "name": "'v'"},
    "WaveVariable": {"type": "u32", "name": "'v'"},
    "LaunchParameter": {"type": "u32", "default": "2", "name": "'v'"},
    "Channel": {"record": "Record", "capacity": "128", "full": "'drop'", "name": "'v'"},
    "Option": {"default": "5", "choices": "()", "several": "()", "bounds": "(1, 9)", "help": "''", "env": "''",
               "name": "''"},
    "hook": {"lanes": "'one'", "fold": "True", "mode": "'own'"},
}
NAMES = {"one": one, "same": same, "u32": u32, "Record": Record}
ALL = {**{f"m.{name}": given for name, given in METHODS.items()}, **FUNCTIONS}


@pytest.fixture(scope="module")
def matmul() -> tuple[Program, Facts]:
    program = lift(load((DATA / "matmul.co").read_bytes(), "reduce"))
    return program, analyse(program)


def made(name: str, parts: Parts, changed: Mapping[str, Any]) -> Any:
    """Calls it with good arguments but for those that are changed."""
    if name.startswith("m."):
        function: Callable[..., Any] = getattr(parts["m"], name[2:])
    else:
        function = getattr(luthier_py, name)
    given = {key: eval(text, NAMES, parts) for key, text in ALL[name].items()} | changed
    positions, several = [], ()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            several = given.pop(parameter.name, ())
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name in given:
            if any(each.kind is each.VAR_POSITIONAL for each in inspect.signature(function).parameters.values()):
                positions.append(given.pop(parameter.name))
    found = function(*positions, *several, **given)
    if name == "hook":
        return found(doubled)
    if name == "computed":
        parts["m"].before(parts["scalar"], one, found, into=parts["count"])
    return found


@pytest.mark.parametrize("name", ALL)
def test_good_arguments_are_taken(name: str, matmul: tuple[Program, Facts]) -> None:
    parts = Parts(*matmul)
    made(name, parts, {})
    parts["m"].edits()


def check_nothing(name: str, parameter: str, matmul: tuple[Program, Facts]) -> None:
    several = parameter in ("args", "inputs", "kernels", "writes", "choices", "several", "bounds")
    for wrong in [object(), [object()]] if several else [object()]:
        with pytest.raises(LuthierError) as found:
            made(name, Parts(*matmul), {parameter: wrong if parameter not in ("args", "inputs") else (object(),)})
        assert NAMED.match(found.value.message), found.value.message


@pytest.mark.parametrize("name", ALL)
def test_an_object_that_is_nothing_is_refused_at_once(name: str, matmul: tuple[Program, Facts]) -> None:
    check_all(lambda parameter: check_nothing(name, parameter, matmul), ALL[name])


def check_whatever(name: str, parameter: str, matmul: tuple[Program, Facts]) -> None:
    refused = 0
    for wrong in (*WRONG, *map(Parts(*matmul).__getitem__, PARTS)):
        parts = Parts(*matmul)
        try:
            made(name, parts, {parameter: (wrong,) if parameter in ("args", "inputs") else wrong})
            parts["m"].edits()
        except LuthierError:
            refused += 1
    assert refused or parameter in ("help", "env", "name")


@pytest.mark.parametrize("name", ALL)
def test_whatever_is_given_nothing_else_is_raised(name: str, matmul: tuple[Program, Facts]) -> None:
    check_all(lambda parameter: check_whatever(name, parameter, matmul), ALL[name])


@pytest.mark.parametrize("wrong", [
    sgpr("3"), sgpr(3.5), sgpr(-1), sgpr(3, 0), sgpr(3, "1"), sgpr(300), vgpr(256), vgpr(255, 2), vgpr("1"),
    Reg("SGPR", 3)], ids=repr)
def test_registers_that_are_none(wrong: Any, matmul: tuple[Program, Facts]) -> None:
    parts = Parts(*matmul)
    m, instr = parts["m"], parts["scalar"]
    calls: list[Callable[[], None]] = [
        lambda: m.before(instr, one, wrong, into=parts["count"]), lambda: m.before(instr, one, 1, into=wrong),
        lambda: m.at_region(parts["region"], one, wrong, into=parts["count"]),
        lambda: m.before(instr, one, computed(same, wrong), into=parts["count"]),
        lambda: m.insert("s_nop 0", before=instr, writes=wrong), lambda: m.change(instr, src0=wrong),
        lambda: m.replace(instr, one, 1, into=wrong), lambda: m.skip_if(parts["memory"], one, wrong)]
    for call in calls:
        with pytest.raises(LuthierError) as found:
            call()
        assert NAMED.match(found.value.message), found.value.message
    m.edits()


def test_every_method_and_function_is_here() -> None:
    methods = {name for name, value in inspect.getmembers(Mutator, inspect.isfunction) if name[0] != "_"}
    assert methods - {"edits"} == METHODS.keys()
    for name, given in ALL.items():
        function = getattr(Mutator, name[2:]) if name.startswith("m.") else getattr(luthier_py, name)
        own = set(inspect.signature(function).parameters) - {"self", "operands"}
        assert own - {"function"} == given.keys() - {"function"}, name
