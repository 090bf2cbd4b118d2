"""Several tools in one instrumented copy.

In: tools, each with its own options. Out: one tool, which is all that drivers see: its edits are those of all, and
its reports have each tool's under its name. Invariant: each tool sees programs and launches as if it were alone, and
has its own variables, channels, notes and choice of instructions. What is chosen before there is a copy (launches,
kernels) and where results go is the same for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import Invalid, did_you_mean
from luthier_py.base.records import replace
from luthier_py.rewrite.tool.arguments.launch_parameter import VALUES
from luthier_py.rewrite.tool.base import LaunchResult, Tool
from luthier_py.rewrite.tool.chosen.selection import COUNTING, EVERY_TOOL, INSTRUCTIONS, Selection
from luthier_py.rewrite.tool.mutator import Mutator, count_edits, derive_mutator
from luthier_py.rewrite.tool.options import Option
from luthier_py.rewrite.tool.records.channel import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Several(Tool):
    """Tools that instrument one copy together."""

    def __init__(self, *tools: Tool) -> None:
        """Invalid where two, or variables of two, have one name, or require different values of what is the same for
        all."""
        self._parts = parts = tuple(part for tool in tools for part in tool.together)
        self.name = ",".join(part.name for part in parts)
        self.variables = tuple(variable for part in parts for variable in part.variables)
        self.wave_variables = tuple(variable for part in parts for variable in part.wave_variables)
        self.channels = tuple(channel for part in parts for channel in part.channels)
        self.launch_parameters = tuple(parameter for part in parts for parameter in part.launch_parameters)
        self._check_apart()
        self.per_launch = any(part.per_launch for part in parts)
        self.cacheable = all(part.cacheable for part in parts)
        self.marks_memory = any(part.marks_memory for part in parts)
        self.finds = any(part.finds for part in parts)
        self.wants_arguments = any(part.wants_arguments for part in parts)
        self.reports_untouched = any(part.reports_untouched for part in parts)
        self.tells_end = any(part.tells_end for part in parts)
        self._take_options({name for name in EVERY_TOOL if len({p.option_values[name] for p in parts}) == 1})
        values = {name: value for part in parts for name, value in vars(part).get(VALUES, {}).items()}
        for tool in (self, *parts):
            vars(tool)[VALUES] = values  # one for all: what a tool sets in its `launching` is the driver's to read

    def _check_apart(self) -> None:
        names: dict[tuple[str, str], str] = {}
        for part in self._parts:
            declared = [*part.variables, *part.wave_variables, *part.channels, *part.launch_parameters]
            for named in (("tools", part.name), *(("variables", each.name) for each in dict.fromkeys(declared))):
                if named in names:
                    both = f"{names[named]} and {part.name} do not go into one copy"
                    raise Invalid(f"{both}: two {named[0]} are called {named[1]}; run these tools one after the other")
                names[named] = part.name

    def _take_options(self, agreed: set[str]) -> None:
        """Those of every tool that are ``agreed`` upon have their names, all others the tool's name before theirs."""
        for name in EVERY_TOOL.keys() - agreed - INSTRUCTIONS:
            said = ", ".join(f"{p.name} has {Option.show(p.option_values[name])}" for p in self._parts)
            raise Invalid(f"option {name} is one for all tools of a run: {said}")
        every = {name: option.default for name, option in EVERY_TOOL.items()}
        own = {(part, name): name if name in agreed else f"{part.name}.{name}"
               for part in self._parts for name in part.option_values}
        self._options = every | {called: part.option_values[name] for (part, name), called in own.items()}
        self.options = {called: {**EVERY_TOOL, **part.options}[name] for (part, name), called in own.items()
                        if called not in EVERY_TOOL}
        self.given = frozenset(called for (part, name), called in own.items() if name in part.given)
        self.selection = Selection.of(self._options)

    @property
    def together(self) -> tuple[Tool, ...]:
        """The tools, each by itself."""
        return self._parts

    @property
    def declared_files(self) -> Mapping[str, str]:
        """Those of all."""
        return {path: said for part in self._parts for path, said in part.declared_files.items()}

    def remade(self, **options: Any) -> Several:
        """New ones with the options that were given to these, and others."""
        given = {**{name: self._options[name] for name in self.given}, **options}
        return several([type(part) for part in self._parts], given)

    def instrument(self, m: Mutator) -> dict[str, Any]:
        """Notes of those that have something to do in this program, or have something to report without."""
        notes, done = {}, 0
        for part in self._parts:
            own = part.instrument(derive_mutator(m, part.selection, part.name))
            if count_edits(m) > done or part.reports_untouched:
                notes[part.name], done = own, count_edits(m)
        return notes

    def launching(self, launch: LaunchResult) -> None:
        """Call each tool's `launching`."""
        for part, own in self._each(launch):
            part.launching(own)

    def name_channel(self, channel: Channel) -> str:
        """The channel's name, with its tool's where another one has a channel of that name."""
        alike = sum(each.attribute == channel.attribute for each in self.channels)
        owner = next((part.name for part in self._parts if channel in part.channels), self.name)
        return channel.attribute if alike < 2 else f"{owner}.{channel.attribute}"

    def received(self, channel: Channel, launch: LaunchResult, records: NDArray[Any]) -> None:
        """Pass records to the tool whose channel it is."""
        for part, own in self._each(launch):
            if channel in part.channels:
                part.received(channel, own, records)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        """Reports by tool; None where one has nothing to do in this program."""
        return {**dict.fromkeys(part.name for part in self._parts),
                **{part.name: part.report(own) for part, own in self._each(launch)}}

    def unobserved(self, launch: LaunchResult) -> str:
        """Where none of them had."""
        reasons = [part.unobserved(own) for part, own in self._each(launch)]
        return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""

    def findings(self, report: Mapping[str, Any]) -> int:
        """The mistakes that all tools report."""
        return sum(part.findings(report[part.name]) for part in self._parts if report[part.name] is not None)

    def text(self, launch: LaunchResult, report: Mapping[str, Any]) -> str:
        """One behind the other."""
        texts = {part.name: part.text(own, report[part.name]) for part, own in self._each(launch)}
        idle = (f"{self.headline(launch)}, there is nothing for {part.name}"
                for part in self._parts if part.name not in texts)
        return "\n".join(filter(None, (*texts.values(), *idle)))

    def rows(self, report: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Those of all tools, with the tool as a column."""
        return [{"tool": part.name, **(row if isinstance(row, Mapping) else {"report": row})}
                for part in self._parts if report[part.name] is not None for row in part.rows(report[part.name])]

    def combined(self, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """None where one of the tools makes no such report: then all have files for each launch."""
        found = dict[str, Any](reports[0])
        for part in self._parts:
            if found[part.name] is not None:
                found[part.name] = part.combined([report[part.name] for report in reports])
                if found[part.name] is None:
                    return None
        return found

    def ending(self, reports: Sequence[Mapping[str, Any]]) -> str:
        """One behind the other."""
        texts = (part.ending([own for each in reports if (own := each[part.name]) is not None])
                 for part in self._parts if part.tells_end)
        return "\n".join(filter(None, texts))

    def files(self, launch: LaunchResult, report: Mapping[str, Any]) -> dict[str, bytes]:
        """Where two tools call a file alike, their names are put before that."""
        found = [(part.name, part.files(own, report[part.name])) for part, own in self._each(launch)]
        times = Counter(name for _, files in found for name in files)
        return {name if times[name] == 1 else f"{tool}.{name}": content
                for tool, files in found for name, content in files.items()}

    def _each(self, launch: LaunchResult) -> Iterator[tuple[Tool, LaunchResult]]:
        """Every tool that has something to do in the launch's program, with the launch as it sees it."""
        for part in self._parts:
            if launch.notes is None or part.name in launch.notes:
                yield part, replace(launch, notes=(launch.notes or {}).get(part.name))


def several(kinds: Sequence[type[Tool]], options: Mapping[str, Any]) -> Several:
    """The tools together; each option is passed to those that have it, or as ``TOOL.NAME`` to that one."""
    given: list[dict[str, Any]] = [{} for _ in kinds]
    if twice := [key for key, count in Counter(map(str.lower, options)).items() if count > 1]:
        raise Invalid(f"option {twice[0]} is given twice")
    for key in sorted(options, key=lambda key: "." in key):  # the more precise one is the last word
        for number in _takers(kinds, key):
            given[number][key.rpartition(".")[2].lower()] = options[key]
    return Several(*(kind(**own) for kind, own in zip(kinds, given, strict=True)))


def _takers(kinds: Sequence[type[Tool]], key: str) -> list[int]:
    """The numbers of those that take an option; Invalid where there is none, or it would be another thing to each."""
    owner, _, name = key.rpartition(".")
    asked = [number for number, kind in enumerate(kinds) if owner in ("", kind.name, *kind.aliases)]
    if not asked:
        raise Invalid(f"option {key}: there is no tool {owner}; there are {', '.join(kind.name for kind in kinds)}")
    if name.upper() in EVERY_TOOL:
        return asked
    found = [number for number in asked if name.lower() in map(str.lower, kinds[number].options)]
    names = [kinds[number].name for number in found or asked]
    if not found:
        options = [option for number in asked for option in (*kinds[number].options, *EVERY_TOOL)]
        raise Invalid(f"option {key}: {' and '.join(names)} {'have' if len(names) > 1 else 'has'} no such option"
                      f"{did_you_mean(name, options)}")
    if len(found) > 1 and name.upper() not in COUNTING:
        raise Invalid(f"option {key}: {' and '.join(names)} have it; write {names[0]}.{name}, for example")
    return found
