"""Which functions the kernels of code objects reach, and by which calls.

In: the parts of a file, one at a time. Out: data and lines. Invariant: functions are found from kernels by what the
code does; symbols only name them, and one without has its address for a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from luthier_py.base.errors import how_many, printable
from luthier_py.base.names import demangle
from luthier_py.binary.loader import Broken, CodeObject
from luthier_py.program.ir import CallSite, Function, Program, lift

if TYPE_CHECKING:
    from luthier_py.report.plain import Json


def calls_of(obj: CodeObject) -> Json:
    """JSON-ready: functions by address, with their calls; of a kernel the functions that it reaches."""
    program = lift(obj)
    functions = [_function(program, function) for function in program.functions]
    return {"file": obj.name, "target": obj.target.name, "functions": functions}


def _function(program: Program, function: Function) -> Json:
    row = {"name": function.name, "address": function.address, "kernel": bool(function.kernel),
           "calls": [_call(site) for site in program.calls(function)]}
    if function.kernel:
        row["reaches"] = [each.address for each in program.reachable(function) if each is not function]
    if function.incomplete:
        row["incomplete"] = function.incomplete
    return row


def _call(site: CallSite) -> Json:
    return {"site": site.instr.pc, "targets": [target.address for target in site.targets],
            "indirect": site.indirect, "unknown": site.unknown, "tail": site.tail}


def calls_lines(parts: Iterable[CodeObject | Broken]) -> Iterator[str]:
    """Lines for people."""
    for part in parts:
        if isinstance(part, Broken):
            yield printable(f"{part.name}: broken: {part.error}")
            continue
        facts = calls_of(part)
        names = {row["address"]: demangle(row["name"]) for row in facts["functions"]}
        yield printable(f"{facts['file']}: {facts['target']}")
        for row in facts["functions"]:
            yield from map(printable, _lines(row, names))


def _lines(row: Json, names: dict[int, str]) -> Iterator[str]:
    kernel = f", a kernel that reaches {how_many(len(row['reaches']), 'function')}" if row["kernel"] else ""
    why = f", not understood: {row['incomplete']}" if "incomplete" in row else ""
    yield f"  0x{row['address']:x} {names[row['address']]}{kernel}{why}"
    for call in row["calls"]:
        how = "goes on to" if call["tail"] else "calls"
        targets = [names[target] for target in call["targets"]] + ["what is not known"] * call["unknown"]
        yield f"    at 0x{call['site']:x} {how}{' one of' * (len(targets) > 1)} {', '.join(targets)}"
