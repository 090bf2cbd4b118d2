"""What a program's kernels may cost, and what they did cost: the verdict, as data and as a table.

In: limits of kernels, measured numbers. Out: a line for each limit of each kernel that it holds for. Invariant: a limit
that nothing was measured for is broken, so a kernel that no longer runs cannot pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase

from luthier_py.base.errors import how_many, printable
from luthier_py.base.records import dataclass
from luthier_py.report.columns import align_columns
from luthier_py.report.plain import Json

Measured = Mapping[str, Mapping[str, float]]
"""Numbers of kernels, by their names as C++ has them."""


class Judgement(Enum):
    """The result of comparing a number with its limit."""

    WORSE = "worse"
    MISSING = "not measured"
    KEPT = "kept"
    BETTER = "better"


@dataclass(frozen=True, slots=True)
class Limit:
    """``tolerance``: a share of the number, or as much as this many."""

    most: float | None = None
    least: float | None = None
    tolerance: float = 0
    share: bool = False

    def judge_value(self, value: float | None) -> Judgement:
        """Compare a measured value with this limit; None, which was not measured, is MISSING. Within the tolerance on
        either side it is KEPT, beyond it WORSE or BETTER."""
        if value is None:
            return Judgement.MISSING
        if self.most is not None and value > self.most + self._leeway(self.most):
            return Judgement.WORSE
        if self.least is not None and value < self.least - self._leeway(self.least):
            return Judgement.WORSE
        better = (self.most is not None and value < self.most - self._leeway(self.most)
                  or self.least is not None and value > self.least + self._leeway(self.least))
        return Judgement.BETTER if better else Judgement.KEPT

    def _leeway(self, number: float) -> float:
        return abs(number) * self.tolerance if self.share else self.tolerance

    def change(self, value: float) -> float:
        """The change of a value against the limit that it is nearest to breaking."""
        bounds = [bound for bound in (self.most, self.least) if bound is not None]
        return value - min(bounds, key=lambda bound: abs(value - bound))

    def __str__(self) -> str:
        bounds = {"<=": self.most, ">=": self.least}
        words = ", ".join(f"{sign} {bound:.12g}" for sign, bound in bounds.items() if bound is not None)
        amount = f"{self.tolerance * 100:.6g}%" if self.share else f"{self.tolerance:.6g}"
        return f"{words} +- {amount}" if self.tolerance else words


@dataclass(frozen=True, slots=True)
class BudgetSection:
    """Limits of the kernel with this name, or of all that match a pattern (``*`` and ``?``)."""

    kernels: str
    limits: Mapping[str, Limit]

    def match_kernels(self, names: Sequence[str]) -> list[str]:
        """The names that match; a name that is there matches itself alone, whatever characters it has."""
        if self.kernels in names:
            return [self.kernels]
        return [name for name in names if fnmatchcase(name, self.kernels)]


@dataclass(frozen=True, slots=True)
class Judged:
    """``kernel``: the section's pattern where no kernel ran that matches it."""

    kernel: str
    number: str
    limit: Limit
    value: float | None

    @property
    def standing(self) -> Judgement:
        """The measured value's judgement by the limit."""
        return self.limit.judge_value(self.value)

    @property
    def kept(self) -> bool:
        """Whether the limit holds: a value that was not measured breaks it, one that is better does not."""
        return self.standing in (Judgement.KEPT, Judgement.BETTER)

    def facts(self) -> Json:
        """JSON-ready: ``max``, ``min`` and ``measured`` are null where there is no such number."""
        return {"kernel": self.kernel, "number": self.number, "max": self.limit.most, "min": self.limit.least,
                "measured": self.value, "standing": self.standing.value}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    """``without``: kernels that ran and have no budget."""

    file: str
    judged: tuple[Judged, ...]
    gone: tuple[str, ...]
    without: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Whether all limits hold, and a kernel ran for each section."""
        return not self.gone and all(each.kept for each in self.judged)


def judge(file: str, sections: Sequence[BudgetSection], measured: Measured) -> BudgetVerdict:
    """Hold each limit of ``sections`` against the numbers of each kernel that its section names; a kernel that several
    sections name is judged by all of them. ``file``: the budget's, for messages."""
    names = list(measured)
    covered = {section.kernels: section.match_kernels(names) for section in sections}
    judged = [Judged(name, number, limit, measured[name].get(number))
              for section in sections for name in covered[section.kernels] for number, limit in section.limits.items()]
    gone = tuple(section for section, found in covered.items() if not found)
    budgeted = {name for found in covered.values() for name in found}
    return BudgetVerdict(file, tuple(judged), gone, tuple(name for name in names if name not in budgeted))


def budget_facts(verdict: BudgetVerdict) -> Json:
    """JSON-ready: a row for each limit of each kernel, then the sections without a kernel and the kernels without a
    section."""
    return {"budget": verdict.file, "kept": verdict.kept, "numbers": [each.facts() for each in verdict.judged],
            "gone": list(verdict.gone), "without": list(verdict.without)}  # fmt: skip


def budget_lines(verdict: BudgetVerdict) -> Iterator[str]:
    """What is worse first; then what was left out, and a sentence that says it all."""
    order = list(Judgement)
    rows = [_cells(each) for each in sorted(verdict.judged, key=lambda each: order.index(each.standing))]
    if rows:
        yield from align_columns(("measured", "budget", "change", "", "number", "kernel"), rows, left=3).split("\n")
    for name in verdict.gone:
        yield printable(f"no kernel {name} ran; take its section out of {verdict.file}, or find out why it is gone")
    for name in verdict.without:
        yield printable(f"no budget for {name}; --write {verdict.file} adds one")
    broken = sum(not each.kept for each in verdict.judged)
    better = sum(each.standing is Judgement.BETTER for each in verdict.judged)
    told = [f"{broken} of {how_many(len(verdict.judged), 'number')} not kept"]
    told += [f"{better} better: --write {verdict.file} keeps it so"] * bool(better)
    told += [f"{how_many(len(verdict.gone), 'section')} without a kernel"] * bool(verdict.gone)
    yield f"budget {verdict.file}: {'; '.join(told)}"


def _cells(each: Judged) -> tuple[str, ...]:
    value = each.value
    change = "" if value is None else f"{each.limit.change(value):+.12g}"
    return ("-" if value is None else f"{value:.12g}", str(each.limit), change, each.standing.value, each.number,
            printable(each.kernel))  # fmt: skip
