"""Options that every tool has: which launches, kernels and instructions, how to count, what to print and where.

In: text or values, from ``-O NAME=VALUE``, keywords or the environment, all spelled alike. Out: a Selection. Names and
meanings are those of NVBit's tools (tools/instr_count/instr_count.cu: intervals are half-open), but that names are
printed as C++ by default. Invariant: a tool that cannot do what a counting option says refuses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from luthier_py.base.errors import Invalid, Unsupported, did_you_mean
from luthier_py.base.names import demangle, shorten_name
from luthier_py.base.records import dataclass, replace
from luthier_py.base.storage import check_file, check_folder
from luthier_py.rewrite.tool.chosen.filters import parse_filter
from luthier_py.rewrite.tool.options import Option

T = TypeVar("T")

NO_END = (1 << 32) - 1
FORMS = (".txt", ".csv", ".json")
RECORD_FORMS = (".ndjson", ".parquet")


def _every(name: str, default: T, help: str) -> Option[T]:
    bounds: Any = (0, NO_END) if type(default) is int else None
    return Option(default, bounds=bounds, help=help, env=name, name=name)


def _table(*options: Option[Any]) -> Mapping[str, Option[Any]]:
    return {option.name: option for option in options}


COUNT_WARP_LEVEL = _every("COUNT_WARP_LEVEL", True, "1: count an instruction once per wave, 0: once per thread")
EXCLUDE_PRED_OFF = _every(
    "EXCLUDE_PRED_OFF", False, "1: without what EXEC turns off, 0: all instructions, all threads that were launched"
)
COUNTING = _table(COUNT_WARP_LEVEL, EXCLUDE_PRED_OFF)
"""For tools that count: they take these, or what they can do of them (``Option.only``), into their class body."""

LAUNCHES = _table(
    _every("START_GRID_NUM", 0, "first launch to instrument; launches count from 0"),
    _every("END_GRID_NUM", NO_END, "first launch not to instrument any more"),
    _every("ACTIVE_FROM_START", True, "0: instrument only between hipProfilerStart and hipProfilerStop"),
    _every("LUTHIER_RANGE", "", "regular expression: only launches in a roctx range with such a name; docs/regions.md"),
)
CODE = _table(
    _every("LUTHIER_KERNELS", "", "regular expression: only kernels with such names, mangled or not"),
    _every("INSTR_BEGIN", 0, "first instruction of each function to instrument; they count from 0"),
    _every("INSTR_END", NO_END, "first instruction of each function not to instrument any more"),
    _every("INSTRUMENT", "", "filter: only such instructions, as in `memory & width >= 8`; docs/filters.md"),
    _every("LUTHIER_OWN_KERNELS", False, "1: at the HSA level the HIP runtime's own kernels, too: copies and fills"),
)
OUTPUT = _table(
    _every("MANGLED_NAMES", False, "1: print names of kernels as they are in the code object, 0: as C++"),
    _every("TOOL_VERBOSE", False, "1: the verdict has lines for each kernel"),
    _every("LUTHIER_OUTPUT", "", f"{' or '.join(FORMS)} file for what each launch counted; %p is the process"),
    Option(0.0, bounds=(0.0, 86400.0), env="LUTHIER_LIVE", name="LUTHIER_LIVE",
           help="seconds after which what was counted so far is told anew, in the place of each launch; 0: never"),
    _every("LUTHIER_REPORT", "", "folder for the tool's own files"),
    _every("LUTHIER_BY_RANGE", False, "1: these files for each roctx range apart, below a folder of its name"),
    _every("LUTHIER_SOURCES", ".", "folder of the sources that pages show; nothing outside of it is read"),
    _every("LUTHIER_RECORDS", "", f"{' or '.join(RECORD_FORMS)} file for what channels send"),
)
EVERY_TOOL = {**LAUNCHES, **CODE, **OUTPUT}
INSTRUCTIONS = frozenset({"INSTR_BEGIN", "INSTR_END", "INSTRUMENT"})
"""Those of them that the Mutator holds a tool to."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a tool is to instrument, and what it prints."""

    start_grid_num: int = 0
    end_grid_num: int = NO_END
    active_from_start: bool = True
    within: str = ""
    kernels: str = ""
    instr_begin: int = 0
    instr_end: int = NO_END
    instrument: str = ""
    own_kernels: bool = False
    mangled_names: bool = False
    verbose: bool = False
    output: Path | None = None
    live: float = 0.0
    report: Path | None = None
    by_range: bool = False
    sources: Path = Path(".")
    records: Path | None = None

    def __post_init__(self) -> None:
        _check_interval("START_GRID_NUM", self.start_grid_num, "END_GRID_NUM", self.end_grid_num)
        _check_interval("INSTR_BEGIN", self.instr_begin, "INSTR_END", self.instr_end)
        _check_pattern("LUTHIER_KERNELS", self.kernels)
        _check_pattern("LUTHIER_RANGE", self.within)
        if self.instrument:
            parse_filter(self.instrument)
        if self.output is not None and self.output.suffix not in FORMS:
            raise Invalid(f"option LUTHIER_OUTPUT={self.output}: give a file that ends in {' or '.join(FORMS)}")
        if self.records is not None and self.records.suffix not in RECORD_FORMS:
            forms = " or ".join(RECORD_FORMS)
            raise Invalid(f"option LUTHIER_RECORDS={self.records}: give a file that ends in {forms}")
        if self.records is not None and self.records.suffix == ".parquet" and find_spec("pyarrow") is None:
            raise Unsupported("Parquet needs pyarrow: pip install luthier-py[study]; or choose a .ndjson file")
        for name, path in (("OUTPUT", self.output), ("RECORDS", self.records)):
            if path is not None:
                check_file(path, f"option LUTHIER_{name}={path}", in_place=name == "RECORDS")
        if self.report is not None:
            check_folder(self.report, f"option LUTHIER_REPORT={self.report}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Selection:
        """The selection that option values by name give."""
        fields = {name.lower().removeprefix("luthier_").removeprefix("tool_"): values[name] for name in EVERY_TOOL}
        for name in ("output", "report", "records"):
            fields[name] = Path(fields[name]) if fields[name] else None
        fields["sources"], fields["within"] = Path(fields["sources"]), fields.pop("range")
        return cls(**fields)

    def of_process(self, program: int) -> Selection:
        """The selection with numbers in names of files: %p is the program's process, %w this one."""
        paths = self.output, self.report, self.records
        output, report, records = (path and Path(expand_placeholders(str(path), program)) for path in paths)
        return replace(self, output=output, report=report, records=records)

    def instructions(self, count: int) -> range:
        """The chosen ones of a function's instructions, of which there are so many."""
        return range(count)[self.instr_begin : self.instr_end]

    def launch(self, index: int) -> bool:
        """Whether the selection's numbers include a launch."""
        return self.start_grid_num <= index < self.end_grid_num

    def in_range(self, name: str) -> bool:
        """Whether the selection includes a range's name, and so launches in it."""
        return bool(re.search(self.within, name))

    def kernel(self, symbol: str) -> bool:
        """Whether the selection includes a kernel's name."""
        return any(re.search(self.kernels, name) for name in (symbol, demangle(symbol)))

    def shown(self, symbol: str) -> str:
        """A kernel's name for people."""
        return symbol if self.mangled_names else demangle(symbol)

    def short(self, symbol: str) -> str:
        """The same where there is little room; mangled names are whole, for programs that read them."""
        return symbol if self.mangled_names else shorten_name(demangle(symbol), symbol)

    def whole(self, symbol: str) -> str:
        """The name of which ``short`` leaves something out; empty where it leaves out nothing."""
        return "" if self.short(symbol) == self.shown(symbol) else self.shown(symbol)


def expand_placeholders(name: str, program: int) -> str:
    """A file's name with the process id of the program for %p, and that of this process for %w."""
    return name.replace("%p", str(program)).replace("%w", str(os.getpid()))


def _check_pattern(name: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise Invalid(f"option {name}={pattern}: give a regular expression: {error}") from None


def _check_interval(first: str, begin: int, last: str, end: int) -> None:
    if begin > end:
        raise Invalid(f"option {last}={end}: give at least {first}, which is {begin}")


def option_values(
    tool: str, own: Mapping[str, Option[Any]], given: Mapping[str, Any]
) -> tuple[dict[str, Any], frozenset[str]]:
    """The value of each option of a tool, and which of them were given, here or by the environment."""
    options = {**own, **EVERY_TOOL}
    spelled = {name.lower(): name for name in options}
    found: dict[str, Any] = {}
    for name, value in given.items():
        known = spelled.get(name.lower())
        if known is None:
            raise Invalid(_unknown(tool, name, own))
        if known in found:
            raise Invalid(f"option {known} is given twice")
        found[known] = options[known].parse(value)
    for name, option in {**COUNTING, **options}.items():
        text = option.environment()
        if text is not None and name not in options:
            raise Invalid(_unknown(tool, name, own))
        if text is not None and name not in found:
            found[name] = option.parse(text)
    return {name: found.get(name, option.default) for name, option in options.items()}, frozenset(found)


def _unknown(tool: str, name: str, own: Mapping[str, Option[Any]]) -> str:
    if name.upper() in COUNTING:
        return f"tool {tool} does not count by {name.upper()}: leave it out"
    hint = did_you_mean(name, (*own, *EVERY_TOOL)) or f"; it has {', '.join((*own, *EVERY_TOOL))}"
    return f"tool {tool} has no option {name}{hint}"
