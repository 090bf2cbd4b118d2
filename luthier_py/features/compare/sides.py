"""The sides of a comparison: what --output wrote, code objects and programs, and data sets of studies.

In: a path. Out: a RunSide, whose numbers have names that other sides may share. Invariant: what a file is, its contents
say; a file that is none of these is Invalid.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from luthier_py.base.errors import Invalid
from luthier_py.base.names import demangle
from luthier_py.base.records import replace
from luthier_py.binary.loader import Broken, CodeObject, load_each, open_code
from luthier_py.features.code.info import kernel_facts
from luthier_py.features.compare.report import Comparison, NamedNumbers, RunSide, compare
from luthier_py.features.study.store import COLUMNS
from luthier_py.features.study.table import APART, study_table
from luthier_py.program.analysis.lines import source_lines
from luthier_py.program.ir import lift
from luthier_py.report.output import SCHEMA
from luthier_py.report.plain import KeyPath
from luthier_py.report.tallies import KERNEL, LINES, OPCODES, NumberName, tally
from luthier_py.rewrite.tool import OUTPUT, amounts_of, combined

CODE = "code"
NO_LINE = "(no line)"
"""The row of instructions without a line."""
WRITTEN = ("tool", "options", "verdict", "launches")  # by --output
STATIC = ("sgprs", "vgprs", "waves_per_simd", "lds_bytes", "private_bytes")
MOST_DIGITS = 300  # of a number: more are no float any more
TAKES = "compare takes files of --output FILE.json, code objects, programs and folders of studies"


def compare_files(before: Path, after: Path, kernels: str | None = None, target: str | None = None) -> Comparison:
    """``kernels``: a regular expression, only such; ``target``: only the code for this one."""
    try:
        chosen = re.compile(kernels or "")
    except re.error as error:
        raise Invalid(f"--kernels {kernels}: give a regular expression: {error}") from None
    for path in (before, after):
        if path.suffix in (".csv", ".txt") and path.is_file():
            raise Invalid(f"{path}: {TAKES}")
    notes: tuple[str, ...] = ()
    if target is None and (found := _common_target(before, after)) is not None:
        target, notes = found
    one, other = (_side(path, chosen, target) for path in (before, after))
    one = replace(one, notes=(*notes, *one.notes))
    if one.what != other.what:
        raise Invalid(f"{before} is {one.what}, {after} {other.what}: compare what one tool counted")
    if not one.kernels or not other.kernels:
        empty = before if not one.kernels else after
        if target is not None and one.what == CODE and (others := _targets(empty)):
            if all(target not in (each, each.partition(":")[0]) for each in others):
                raise Invalid(f"--target {target}: {empty} has code for {', '.join(others)}")
        raise Invalid(f"{empty}: there is no kernel{' that --kernels chooses' if kernels else ''}")
    return compare(one, other)


def _common_target(before: Path, after: Path) -> tuple[str, tuple[str, ...]] | None:
    """Of builds for several targets the only one that both have, with a note that says so."""
    if not all(map(_is_code, (before, after))):
        return None
    sides = [_targets(path) for path in (before, after)]
    common = [each for each in sides[0] if each in sides[1]]
    others = [each for side in sides for each in side if each not in common]
    if len(common) != 1 or not others:
        return None
    return common[0], (f"of {common[0]}, the only target that both have; left out: {', '.join(dict.fromkeys(others))}",)


def _is_code(path: Path) -> bool:
    """And no study's, nor what --output wrote."""
    if not path.is_file() or path.suffix == ".parquet":
        return False
    with path.open("rb") as file:
        return not file.read(64).lstrip().startswith(b"{")


def _targets(path: Path) -> list[str]:
    with open_code(path) as data:
        found = [str(part.target_id) for part in load_each(data, str(path)) if not isinstance(part, Broken)]
    return list(dict.fromkeys(found))


def _side(path: Path, kernels: re.Pattern[str], target: str | None) -> RunSide:
    if path.is_dir() or path.suffix == ".parquet":
        return _study(path, kernels)
    try:
        with path.open("rb") as file:
            first = file.read(64).lstrip()[:1]
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from None
    return _output(path, kernels) if first == b"{" else _code(path, kernels, target)


# -- what --output wrote ----------------------------------------------------------------------------


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text:.20} is no number of a report")


def _whole(text: str) -> int:
    return int(text) if len(text) <= MOST_DIGITS else _no_number(text)


def _output(path: Path, kernels: re.Pattern[str]) -> RunSide:
    try:
        document = json.loads(path.read_bytes(), parse_constant=_no_number, parse_int=_whole)
        if document["schema"] != SCHEMA:
            raise Invalid(f"{path}: its schema is {document['schema']}, and this reads {SCHEMA}")
        tool, options, verdict, launches = (document[name] for name in WRITTEN)
        reports: dict[str, list[Any]] = {}
        for row in launches:
            reports.setdefault(demangle(row["kernel"]), []).append(row["report"])
        how = {name: value for name, value in options.items() if name not in OUTPUT}
        run = document.get("run") or {}
        measured = {name: value for name, value in run.items() if name.startswith("device_")}
        whose = demangle(run["kernel"]) if run else ""
        refused = tuple(_report_refusals(path, verdict))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Invalid(f"{path} is no output of Luthier-py ({type(error).__name__}: {error}); {TAKES}") from None
    found = {name: _tally_reports(each, name, str(tool)) for name, each in reports.items()}
    if run:
        found.setdefault(whose, {}).update(tally([measured]))
    what = tool or "a run without a tool"
    return RunSide(str(path), what, _select_kernels(found, kernels), how, refused)


def _tally_reports(reports: Sequence[Any], kernel: str, tool: str) -> dict[NumberName, float]:
    """As the tool's declaration has it, where there is one and reports are as it says."""
    amounts = amounts_of(tool)
    if amounts is not None:
        with suppress(LookupError, TypeError, ValueError, AttributeError, ArithmeticError):  # of another version
            return tally([reports[0] if len(reports) == 1 else combined(amounts, reports)], kernel, amounts)
    return tally(reports, kernel)


def _report_refusals(path: Path, verdict: Mapping[str, Any] | None) -> Iterator[str]:
    for row in (verdict or {}).get("refused", ()):
        yield f"{path}: {demangle(row['kernel'])} was refused: {row['reason']}"


# -- code -------------------------------------------------------------------------------------------


def _code(path: Path, kernels: re.Pattern[str], target: str | None) -> RunSide:
    """Names say the target where there are several, and which one it is of several kernels of one name."""
    found: list[tuple[str, str, NamedNumbers]] = []
    notes = []
    with open_code(path) as data:
        for part in load_each(data, str(path)):
            if isinstance(part, Broken):
                notes.append(f"{part.name}: broken: {part.error}")
            elif target in (None, part.target.name, str(part.target_id)):
                notes += [f"{part.name}: left out: {each.name}: {each.error}" for each in part.left_out]
                found += [(name, str(part.target_id), numbers) for name, numbers in _static(part, kernels)]
    several = len({where for _, where, _ in found}) > 1
    named: dict[str, NamedNumbers] = {}
    times: Counter[str] = Counter()
    for name, where, numbers in found:
        name = f"{name} [{where}]" if several else name
        times[name] += 1
        named[f"{name} #{times[name]}" if times[name] > 1 else name] = numbers
    return RunSide(str(path), CODE, named, notes=tuple(notes))


def _static(obj: CodeObject, kernels: re.Pattern[str]) -> Iterator[tuple[str, NamedNumbers]]:
    """What a kernel asks of the device, and the instructions of its code, that of functions which it calls with it."""
    chosen = [kernel for kernel in obj.kernels if kernels.search(demangle(kernel.name))]
    program, lines = lift(obj, [kernel.name for kernel in chosen]), source_lines(obj)
    for kernel in chosen:
        facts = kernel_facts(obj, kernel)
        functions = program.reachable(program.kernel(kernel.name).function)
        instrs = [instr for function in functions for instr in function.instrs]
        places = (lines.at(instr.pc) for instr in instrs)
        by_line = Counter(NO_LINE if line is None else f"{line.file.rpartition('/')[2]}:{line.line}" for line in places)
        by_opcode = Counter(mnemonic for instr in instrs for mnemonic in instr.op.mnemonics)
        yield demangle(kernel.name), {
            **{NumberName(KERNEL, "", name): facts[name] for name in STATIC},
            NumberName(KERNEL, "", "code_bytes"): sum(function.size_bytes for function in functions),
            NumberName(KERNEL, "", "instructions"): len(instrs),
            **{NumberName(LINES, line, ""): count for line, count in by_line.items()},
            **{NumberName(OPCODES, opcode, ""): count for opcode, count in by_opcode.items()},
        }


# -- studies ----------------------------------------------------------------------------------------


def _study(path: Path, kernels: re.Pattern[str]) -> RunSide:
    """A kernel under each program, arguments, tool, device and stack, as far as these differ in the study."""
    table = study_table(path)
    if missing := set(COLUMNS) - set(table.column_names):
        raise Invalid(f"{path} has no {', '.join(sorted(missing))}, as results of this version's studies have; {TAKES}")
    rows = [row for row in table.to_pylist() if row["metric"] and not row["repeat"]]
    telling = [name for name in APART if len({row[name] for row in rows}) > 1]
    tools = sorted({row["tool"] for row in rows})
    reports: dict[tuple[str, str, str], dict[tuple[Any, ...], dict[KeyPath, Any]]] = {}
    for row in rows:
        key = " ".join(filter(None, (row[name] for name in telling))), demangle(row["kernel"]), row["tool"]
        launch = reports.setdefault(key, {}).setdefault((row["cell"], row["process"], row["launch"]), {})
        launch[tuple(row["way"])] = row["count"] if row["count"] is not None else row["text"] or row["value"]
    found = {f"{run} {kernel}".lstrip(): _tally_reports([*map(_nest_leaves, launches.values())], kernel, tool)
             for (run, kernel, tool), launches in reports.items()}
    return RunSide(str(path), f"a study with {', '.join(tools)}", _select_kernels(found, kernels))


def _nest_leaves(leaves: Mapping[KeyPath, Any]) -> Any:
    """A report of its leaves: ``{("rows", "0", "pc"): 4}`` is ``{"rows": [{"pc": 4}]}``."""
    if () in leaves:
        return leaves[()]
    parts: dict[str, dict[KeyPath, Any]] = {}
    for (key, *way), value in leaves.items():
        parts.setdefault(key, {})[tuple(way)] = value
    found = {key: _nest_leaves(part) for key, part in parts.items()}
    return list(found.values()) if list(found) == [str(at) for at in range(len(found))] else found


def _select_kernels(found: Mapping[str, NamedNumbers], kernels: re.Pattern[str]) -> dict[str, NamedNumbers]:
    return {name: numbers for name, numbers in found.items() if kernels.search(name)}
