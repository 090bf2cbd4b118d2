"""Tool: the class that authors derive from, and what they get back after a launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from luthier_py.base.errors import Invalid, ToolError
from luthier_py.base.records import dataclass, replace
from luthier_py.base.storage import digest
from luthier_py.rewrite.tool.arguments.allocations import LiveAllocation
from luthier_py.rewrite.tool.arguments.launch_parameter import LaunchParameter
from luthier_py.rewrite.tool.arguments.launch_variable import LaunchVariable
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.chosen.selection import EVERY_TOOL, Selection, option_values
from luthier_py.rewrite.tool.edits import Edits
from luthier_py.rewrite.tool.mutator import Mutator
from luthier_py.rewrite.tool.options import Option
from luthier_py.rewrite.tool.records.amounts import Amounts, combined, main_rows
from luthier_py.rewrite.tool.records.channel import Channel
from luthier_py.rewrite.tool.records.data import encoded, json_text
from luthier_py.rewrite.tool.variables import LookupTable, Variable, WaveVariable, copy_inherited_variables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from luthier_py.program.analysis import Facts
    from luthier_py.program.ir import Program


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """One launch of an instrumented kernel. ``launch[variable]`` is a tool variable's value after it."""

    index: int                    # of the launch, from 0
    kernel: str
    grid: tuple[int, int, int]    # work-groups
    block: tuple[int, int, int]   # work-items in a work-group
    memory: Mapping[str, bytes]   # by Variable.name
    launches: int = 1             # that have added to the variables; this is the last of them
    device: int = 0               # number of the GPU
    notes: Any = None             # what the tool's `instrument` returned for this kernel's program
    arguments: bytes | None = None  # the kernarg segment, where a tool wants arguments and they are known
    allocations: tuple[LiveAllocation, ...] = ()  # that it may access, by address; empty where they are not known
    freed: tuple[LiveAllocation, ...] = ()  # before it, the newest first
    ranges: tuple[str, ...] = ()    # that the program had marked and not ended, outermost first; of `launches` all
    program: Callable[[], Program] | None = None  # lifts the kernel's code, for who shows it

    def __getitem__(self, variable: Variable) -> Any:
        """A variable's value: a number, or a tuple of them for an array; NumPy's arrays of structures, and of what is
        in a LaunchVariable."""
        if not isinstance(variable, Variable) or variable.name not in self.memory:
            have = ", ".join(sorted(self.memory)) or "none"
            raise Invalid(f"{caller()}: launch[...] takes a Variable of the tool, not {variable!r}; it has: {have}")
        return variable.decode(self.memory[variable.name])

    @property
    def workgroups(self) -> int:
        """Work-groups of the launch."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def workitems(self) -> int:
        """The number of work-items in a work-group."""
        return self.block[0] * self.block[1] * self.block[2]


class Tool:
    """Base of all tools. Variables, WaveVariables, Options and hooks are declared in the class body.

    The docstring's first paragraph is the tool's description. ``aliases`` are other names that it is found by. A tool
    that counts says how by taking COUNT_WARP_LEVEL and EXCLUDE_PRED_OFF, or what it can do of them, as options.
    """

    name: str = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    variables: tuple[Variable, ...] = ()
    wave_variables: tuple[WaveVariable, ...] = ()
    channels: tuple[Channel, ...] = ()
    launch_parameters: tuple[LaunchParameter, ...] = ()
    options: Mapping[str, Option[Any]] = MappingProxyType({})
    per_launch: bool | Option[bool] = True
    """Variables are cleared before each launch and read after it. Where False they grow, and are read when the program
    or its module ends: launches wait for nothing, and those of several streams stay concurrent."""
    cacheable: bool = False
    """Whether `instrument` depends on nothing but the program, the options, the class's module (or the package that it
    is in), ``sources`` and the files that it names by `reads`, and does nothing but record edits and return notes: then
    it is not called again for what was instrumented before. Each class says it for itself."""
    sources: ClassVar[Sequence[ModuleType | str | PathLike[str]]] = ()
    """What else the edits of a tool that is ``cacheable`` depend on: modules that it imports, beside those of
    luthier_py, and files or folders, whose paths count from the folder of the class's file."""
    wants_arguments: bool = False
    """Launches have their arguments with them."""
    reports_untouched: bool = False
    """Launches of kernels in which nothing was inserted are reported, too."""
    marks_memory: bool = False
    """Memory that a program allocates holds numbers made of its addresses until it is written (tool.allocations,
    `unwritten`)."""
    finds: bool = False
    """Whether it looks for mistakes, of which `findings` says how many there are."""
    amounts: ClassVar[Amounts | None] = None
    """What the numbers of its reports are: so those of several launches become one, and runs are compared."""
    asks_first: ClassVar[bool] = False
    """Whether there is no such tool without options."""
    tells_end: bool = False
    """Whether it has something to say of all launches together: `ending`."""
    selection = Selection()
    given: frozenset[str] = frozenset()  # names of options
    unechoed: frozenset[str] = frozenset({"LUTHIER_SOURCES"})
    """Names of options that only a verbose tool prints: those that every worker gets."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        body = list(vars(cls).values())
        body = [*copy_inherited_variables(cls), *body]
        cls.name = vars(cls).get("name", cls.__name__)
        cls.cacheable = vars(cls).get("cacheable", False)  # what a derived class adds may depend on more
        cls.channels = tuple(v for v in body if isinstance(v, Channel))
        cls.launch_parameters = tuple(v for v in body if isinstance(v, LaunchParameter))
        special = {*cls.channels, *cls.launch_parameters}
        cls.variables = tuple(v for v in body if isinstance(v, Variable) and not isinstance(v, LookupTable)
                              and v not in special)
        cls.wave_variables = tuple(v for v in body if isinstance(v, WaveVariable))
        cls.options = {**cls.options, **{o.name: o for o in body if isinstance(o, Option)}}
        if taken := sorted({name.upper() for name in cls.options} & EVERY_TOOL.keys()):
            raise Invalid(f"tool {cls.name} cannot have an option {taken[0]}: every tool has it already")

    def __init__(self, **options: Any) -> None:
        """Options as Python values or as text; Invalid when one is unknown or wrong."""
        self._options, self.given = option_values(self.name, self.options, options)
        self.selection = Selection.of(self._options)
        self._reads: dict[str, str] = {}

    @classmethod
    def description(cls) -> str:
        """What the tool does, in one line."""
        return " ".join(cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())

    @property
    def together(self) -> tuple[Tool, ...]:
        """The tools that share its copies: itself, but for `Several`."""
        return (self,)

    def remade(self, **options: Any) -> Tool:
        """A new one with the options that were given to this one, and others."""
        return type(self)(**{**{name: self._options[name] for name in self.given}, **options})

    @property
    def option_values(self) -> Mapping[str, Any]:
        """The values of all options, by name."""
        return self._options

    def reads(self, path: str | PathLike[str]) -> Path:
        """The path, of which `instrument` reads the file from now on, or all files of a folder: what was made before
        counts only while they are the same."""
        if "_reads" not in vars(self):
            self._reads = {}
        self._reads[fspath(path)] = digest(fspath(path))
        return Path(path)

    @property
    def declared_files(self) -> Mapping[str, str]:
        """What the tool said by `reads`, as it said it, and what was in it then, digested."""
        return dict(vars(self).get("_reads", {}))

    def echo(self) -> str:
        """The options that were given, but for ``unechoed`` ones, with value and meaning; with TOOL_VERBOSE all, as
        NVBit's tools print them, those that were given with a mark. Empty where there is nothing to print."""
        options = {**self.options, **EVERY_TOOL}
        if not self.selection.verbose:
            options = {name: option for name, option in options.items() if name in self.given - self.unechoed}
        if not options:
            return ""
        width = max(map(len, options))
        lines = [f"luthier: tool {self.name}, options (* given):"]
        for name, option in options.items():
            mark = "*" if name in self.given else " "
            value = Option.show(self._options[name])
            lines.append(f"  {mark} {name:>{width}} = {value}{' - ' if option.help else ''}{option.help}")
        return "\n".join(lines)

    def headline(self, launch: LaunchResult) -> str:
        """How a line about a launch begins."""
        name = self.selection.short(launch.kernel)
        within = f" - in {' > '.join(launch.ranges)}" if launch.ranges else ""
        if launch.launches > 1:
            return f"{launch.launches} launches until {launch.index} - {name}{within}"
        return f"kernel {launch.index} - {name} - #workgroups {launch.workgroups}{within}"

    def instrument(self, m: Mutator) -> Any:
        """Record the edits; called once for each program, of which there may be many. What `report` and `files` need
        to know of this one is returned, and comes back as ``launch.notes``."""
        raise ToolError(f"tool {self.name} does not say what to instrument; write a method instrument(self, m)")

    def name_channel(self, channel: Channel) -> str:
        """The name of a channel in counts of records and files."""
        return channel.attribute

    @property
    def gathered(self) -> dict[Any, Any]:
        """What `received` and `report` keep for each other; `instrument` is not to look at it."""
        found: dict[Any, Any] = vars(self).setdefault("_gathered", {})
        return found

    def launching(self, launch: LaunchResult) -> None:
        """Called before each launch of a kernel that has channels or launch parameters: what these are set to here
        holds for this launch."""

    def received(self, channel: Channel, launch: LaunchResult, records: NDArray[Any]) -> None:
        """Records of a launch, as a structured array with the record's fields, while it runs; once or more often. Those
        of one wave come in the order in which it pushed them. Perhaps called in another thread than the tool's other
        methods, one call at a time. ``launch`` has no variables yet."""
        if self.selection.records is None:
            raise ToolError(f"tool {self.name} does not say what to do with what {channel.attribute} sends; write a "
                            "method received(self, channel, launch, records), or choose a file: LUTHIER_RECORDS")

    def report(self, launch: LaunchResult) -> Any:
        """What to report of a launch: any data (docs/output.md); by default the tool's variables."""
        return {variable.attribute: launch[variable] for variable in self.variables}

    def unobserved(self, launch: LaunchResult) -> str:
        """Why the tool had nothing to go by in a launch, whose report is then no result; empty where it had."""
        return ""

    def findings(self, report: Any) -> int:
        """How many mistakes a report names, each place in the code once; of what says that it ``finds``."""
        return 0

    def text(self, launch: LaunchResult, report: Any) -> str:
        """What to print of a launch for people; by default its kernel, and a line for each item of the report."""
        items = report.items() if isinstance(report, Mapping) else [(self.name, report)]
        return "\n".join([self.headline(launch), *(f"  {name} = {value}" for name, value in items)]) if items else ""

    def rows(self, report: Any) -> Sequence[Any]:
        """The report as rows of a table, which CSV is; by default the first list of rows that ``amounts`` declares, or
        the report itself."""
        main = main_rows(self.amounts or {})
        return [report] if main is None else list(report[main])

    def combined(self, reports: Sequence[Any]) -> Any | None:
        """One report of several launches of a kernel, of which the first may be one that it has made, by default as
        ``amounts`` says; None: there is none."""
        return None if self.amounts is None else combined(self.amounts, reports)

    def ending(self, reports: Sequence[Any]) -> str:
        """What to print when a run is over, if the tool `tells_end`. ``reports``: of each kernel what is combined of
        all its launches."""
        return ""

    def files(self, launch: LaunchResult, report: Any) -> Mapping[str, bytes]:
        """What to save of a launch where files are requested: content by file name; by default its data and text. A
        page with source and code is added, ``NAME.html``, where rows of the report have addresses and none is given."""
        data, text = json_text(report, f"the report of {self.name}"), self.text(launch, report)
        if text and (name := self.selection.whole(launch.kernel)):
            text = f"{self.selection.short(launch.kernel)} is {name}\n{text}"
        return {f"{self.name}.json": encoded(f"{data}\n"), f"{self.name}.txt": encoded(f"{text}\n")}


def visit(tool: Tool, program: Program, facts: Facts) -> Edits:
    """The edits that a tool wants of a program."""
    mutator = Mutator(program, facts, tool.selection)
    notes = tool.instrument(mutator)
    edits = mutator.edits(tool.variables, tool.wave_variables)
    sized = [variable for variable in edits.variables if isinstance(variable, LaunchVariable)]
    if sized and not tool.per_launch:
        raise Invalid(f"tool {tool.name}: {sized[0]} is as large as a launch; with per_launch=False nobody waits for "
                      "one")
    return replace(edits, notes=notes)
