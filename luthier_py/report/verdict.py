"""The verdict that every run with a tool ends with.

In: what became of each launch and each kernel, reported as it happens. Out: a line for people, details on request,
facts for programs. Invariant: nothing is dropped: launches = those that were not selected + those that ran as they are
+ those that were instrumented, and a kernel that was refused is named with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import Location
from luthier_py.base.records import dataclass, field
from luthier_py.program.analysis import source_lines
from luthier_py.report.cloned import change, collect_clone_facts
from luthier_py.rewrite.tool import LAUNCHES, LaunchResult, Option, Refusal, Tool, left_out_lines, left_out_of
from luthier_py.rewrite.tool.chosen.filters import asks_for_lines
from luthier_py.rewrite.tool.chosen.selection import CODE, INSTRUCTIONS
from luthier_py.rewrite.tool.hooks.printing import PRINTED

if TYPE_CHECKING:
    from luthier_py.binary.loader import CodeObject
    from luthier_py.report.plain import Json
    from luthier_py.report.received import RecordCount
    from luthier_py.rewrite.inject.cloned import ClonedKernel
    from luthier_py.rewrite.pipeline import Instrumented

SHOWN = 5  # kernels of a list that are named
SELECTING = {**LAUNCHES, "LUTHIER_KERNELS": CODE["LUTHIER_KERNELS"]}


@dataclass(frozen=True, slots=True)
class KernelVerdict:
    """One instrumented kernel. ``seconds``: by stage of the pipeline and part of one; ``cached``: no hook had to be
    compiled."""

    cloned: ClonedKernel
    seconds: dict[str, float]
    cached: bool

    def facts(self) -> Json:
        """JSON-ready; seconds are rounded to microseconds."""
        return {**collect_clone_facts(self.cloned), "seconds": _round_seconds(self.seconds), "cached": self.cached}


@dataclass(slots=True)
class Verdict:
    """Mutable: grows with a run."""

    tool: Tool
    launches: int = 0
    """That the program made."""
    selected: int = 0
    """Of these, those that the options select."""
    instrumented: int = 0
    """Of these, those that ran with the tool in them."""
    without_code: int = 0
    """Of the selected ones, those that the tool reports though nothing of it is in their kernels."""
    failed: int = 0
    """Of the selected ones, those that the runtime did not begin."""
    unseen: int = 0
    """Others, which only the device counted: they bypassed the tool."""
    detached: int = 0
    """Of those that were not selected, those while the tool was off."""
    lost: int = 0
    """Of the selected ones, those of which there is no count, though nothing speaks against their kernels."""
    unfinished: int = 0
    """Of the lost ones, those that the device failed in, or before."""
    without_binary: str = ""
    """Which devices the program's code is for, where there is none for this one."""
    cut: bool = False
    """The program ended without a word: by a signal, _exit or exec."""
    kernels: dict[str, KernelVerdict] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons by kernel."""
    not_chosen: set[str] = field(default_factory=set)
    """Kernels that the options leave out."""
    untouched: set[str] = field(default_factory=set)
    """Kernels that the tool had nothing to insert into."""
    left_out: list[str] = field(default_factory=list)
    """What it would have done in these, and why it could not."""
    without_lines: set[str] = field(default_factory=set)
    """Of these, those whose objects have no line tables, where the options ask for lines."""
    extents: dict[str, tuple[int, int]] = field(default_factory=dict)
    """And of the other objects: the source files, with the first line that has code and the last."""
    unobserved: dict[str, int] = field(default_factory=dict)
    """Launches in which the tool ran and had nothing to go by, by its reasons."""
    findings: int = 0
    """Mistakes that reports name."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of all instrumentation, by stage."""
    records: dict[str, RecordCount] = field(default_factory=dict)
    """What became of the records that channels sent, by channel."""

    @property
    def observed(self) -> bool:
        """Whether the tool observed one launch at least: it ran in it, or reports it without code, and had something to
        go by."""
        return self.instrumented + self.without_code > sum(self.unobserved.values())

    @property
    def sites(self) -> int:
        """Edits in all kernels that were instrumented."""
        return sum(kernel.cloned.sites for kernel in self.kernels.values())

    def add_instrumented(self, made: Instrumented) -> None:
        """What the pipeline did with a code object."""
        self.add(made.patched.report, made.refused, made.seconds, made.cached)

    def add(
        self, cloned: Iterable[ClonedKernel], refused: Iterable[Refusal], seconds: Mapping[str, float], cached: bool
    ) -> None:
        """What became of a code object: kernels that were instrumented, and those that were not."""
        for stage, took in seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + took
        for kernel in cloned:
            self.kernels[kernel.name] = KernelVerdict(kernel, dict(seconds), cached)
        for refusal in refused:
            self.refuse(refusal)

    def refuse(self, refusal: Refusal) -> None:
        """Note that a kernel runs as it is, and why; of several refusals of one kernel the last stays."""
        where = "" if refusal.where == Location(refusal.kernel) else f" [{refusal.where}]"
        self.refused[refusal.kernel] = f"{refusal.reason}{where}"

    def add_untouched(self, kernel: str, obj: CodeObject, notes: Any) -> None:
        """The tool inserts nothing into it. ``notes``: what it says of the program."""
        self.untouched.add(kernel)
        self.left_out += [line.strip() for line in left_out_lines(left_out_of(notes))]
        if asks_for_lines(self.tool.selection.instrument):
            lines = source_lines(obj)
            self.extents |= lines.extents
            self.without_lines |= set() if lines else {kernel}

    def add_report(self, launch: LaunchResult, report: Any) -> None:
        """What is reported of a launch; None where that went wrong."""
        if report is not None:
            self.findings += self.tool.findings(report)
        if why := self.tool.unobserved(launch):
            self.unobserved[why] = self.unobserved.get(why, 0) + launch.launches

    def reasons(self) -> list[str]:
        """Why launches ran without the tool, as far as no refusal says it, and why it observed nothing of others."""
        return [*self._without_tool(), *self.unobserved]

    def _without_tool(self) -> list[str]:
        found = []
        if not self.launches:
            found.append("no launch came to the tool")
        chosen, others = self._format_options(SELECTING), self.launches - self.selected
        if self.detached and self.tool.selection.active_from_start:
            others -= self.detached
            found.append(f"the tool was detached in {self.detached} of {self.launches} launches: by hipProfilerStop, "
                         "roctxProfilerPause, or from outside")
        if others and chosen:
            which = f", which are {self._list_kernels(self.not_chosen)}" if self.not_chosen else ""
            found.append(f"{chosen} leaves out {others} of {self.launches} launches{which}")
        if self.untouched:
            cut = self._format_options({name: option for name, option in CODE.items() if name in INSTRUCTIONS})
            left = f"what {cut} leaves of " if cut else ""
            where = f"{left}{self._list_kernels(self.untouched)}"
            found.append(f"nothing of {self.tool.name} can be done in {where}: "
                         f"{'; '.join(dict.fromkeys(self.left_out))}" if self.left_out else
                         f"there is nothing for {self.tool.name} in {where}")
        if self.without_lines:
            found.append(f"INSTRUMENT asks for source lines, and there are no line tables of "
                         f"{self._list_kernels(self.without_lines)}: compile with -g")
        if self.extents:
            files = [f"{file}:{first}-{last}" for file, (first, last) in sorted(self.extents.items())]
            more = f" and {len(files) - SHOWN} more files" if len(files) > SHOWN else ""
            found.append(f"INSTRUMENT asks for source lines; the code there is of {', '.join(files[:SHOWN])}{more}")
        if self.failed:
            found.append(f"{_many(self.failed, 'launch', 'launches')} did not begin: the runtime took no such grid, "
                         "block or memory")  # fmt: skip
        if self.unfinished:
            found.append(f"{_many(self.unfinished, 'launch', 'launches')} left no count: the device failed first")
        if lost := self.lost - self.unfinished:
            found.append(f"{_many(lost, 'launch', 'launches')} left no count{self._why_lost()}")
        return found

    def _why_lost(self) -> str:
        if self.cut:
            return (": the program ended by a signal, _exit or exec, or closed all its files, before their counts were "
                    "read")  # fmt: skip
        if self.without_binary:
            return f"; {self.without_binary}"
        return (", and it is not known why: perhaps their graph has no twin, their code was there before the tool, "
                "there was no memory for what is kept of them, or the device failed")  # fmt: skip

    def nothing_inserted(self, obj: CodeObject, notes: Any) -> str:
        """Why it stayed as it is."""
        names = {kernel.name for kernel in obj.kernels}
        if names and not any(map(self.tool.selection.kernel, names)):
            return f"LUTHIER_KERNELS={self.tool.selection.kernels} leaves out {self._list_kernels(names)}"
        self.launches, self.selected = 1, 1
        for name in names:
            self.add_untouched(name, obj, notes)
        return "; ".join(self.reasons()) if names else "there is no kernel"

    def _format_options(self, options: Mapping[str, Option[Any]]) -> str:
        """Those of these options that choose something, as they could be given."""
        values = self.tool.option_values
        chosen = [name for name in options if values[name] != options[name].default]
        return " ".join(f"{name}={Option.show(values[name])}" for name in chosen)

    def _list_kernels(self, kernels: set[str]) -> str:
        names = sorted(map(self.tool.selection.short, kernels))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return f"{_many(len(names), 'kernel')} {', '.join(names[:SHOWN])}{more}"

    def facts(self) -> Json:
        """JSON-ready."""
        return {
            "tool": self.tool.name,
            "launches": self.launches,
            "selected": self.selected,
            "instrumented": self.instrumented,
            "without_code": self.without_code,
            "failed_launches": self.failed,
            "detached_launches": self.detached,
            "unseen": self.unseen,
            "lost_launches": self.lost,
            "observed": self.observed,
            "reasons": self.reasons(),
            "findings": self.findings if self.tool.finds else None,
            "sites": self.sites,
            "seconds": _round_seconds(self.seconds),
            "records": {name: count.facts() for name, count in self.records.items()},
            "kernels": [kernel.facts() for kernel in self.kernels.values()],
            "refused": [{"kernel": name, "reason": reason} for name, reason in self.refused.items()],
        }

    def text(self) -> str:
        """One line; with TOOL_VERBOSE more, one for each kernel and each stage."""
        parts = [
            f"{_many(self.launches, 'launch', 'launches')}, {self.selected} selected, "
            f"{self.instrumented} instrumented by {self.tool.name}"
            + (f", {self.without_code} reported without code" if self.without_code else ""),
            f"{_many(len(self.kernels), 'kernel')}, {_many(self.sites, 'site')}, {len(self.refused)} refused",
        ]
        if self.tool.finds:
            parts.append(_many(self.findings, "finding"))
        if self.unseen:
            parts.append(f"{_many(self.unseen, 'more launch', 'more launches')} that the tool did not see")
        if self.kernels:
            cached = sum(kernel.cached for kernel in self.kernels.values())
            took = sum(took for stage, took in self.seconds.items() if "." not in stage)
            # Hooks stand beside the program's instructions and never count each other.
            parts.append(f"waves/SIMD {self._occupancy()} with the tool, counts without it")
            parts.append(f"instrumented in {took:.2f} s, {cached} from cache")
        told = {name: count for name, count in self.records.items() if count.pushed or name != PRINTED.attribute}
        parts += [f"{name}: {count}" for name, count in told.items()]
        lines = [f"verdict: {'; '.join(parts)}"]
        shown = self.tool.selection.short
        for reason in dict.fromkeys(self.refused.values()):
            names = {name for name, why in self.refused.items() if why == reason}
            lines.append(f"  refused: {shown(*names) if len(names) == 1 else self._list_kernels(names)}: {reason}")
        lines += [f"  not instrumented: {reason}" for reason in self._without_tool() if self.launches]
        lines += [f"  nothing observed in {_many(number, 'launch', 'launches')}: {reason}"
                  for reason, number in self.unobserved.items()]
        if self.tool.selection.verbose:
            lines += [line for name, kernel in self.kernels.items() for line in _details(shown(name), kernel)]
        return "\n".join(lines)

    def _occupancy(self) -> str:
        """The worst change; the same for all kernels where nothing changed."""
        pairs = {(kernel.cloned.before.waves, kernel.cloned.after.waves) for kernel in self.kernels.values()}
        before, after = min(pairs, key=lambda pair: (pair[1] - pair[0], pair))
        worst = " at worst" if len(pairs) > 1 else ""
        return f"{change(before, after)}{worst}"


def _details(name: str, kernel: KernelVerdict) -> list[str]:
    cloned, stages = kernel.cloned, _stages(kernel.seconds)
    before, after = cloned.before, cloned.after
    return [
        f"  {name}: {_many(cloned.sites, 'site')}, {change(cloned.bytes_before, cloned.bytes_after)} bytes of code, "
        f"SGPRs {change(before.sgprs, after.sgprs)}, VGPRs {change(before.vgprs, after.vgprs)}, "
        f"waves/SIMD {change(before.waves, after.waves)}",
        f"    ms: {stages}{'; hooks from cache' if kernel.cached else ''}",
    ]


def _stages(seconds: Mapping[str, float]) -> str:
    """In milliseconds, parts behind their stage."""
    found = []
    for stage, took in seconds.items():
        parts = [f"{name.rpartition('.')[2]} {part * 1e3:.1f}" for name, part in seconds.items()
                 if name.startswith(f"{stage}.")]
        inside = f" ({', '.join(parts)})" if parts else ""
        found += [f"{stage} {took * 1e3:.1f}{inside}"] if "." not in stage else []
    return ", ".join(found)


def _round_seconds(seconds: dict[str, float]) -> dict[str, float]:
    return {stage: round(took, 6) for stage, took in seconds.items()}


def _many(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
