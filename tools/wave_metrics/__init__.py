"""Instructions, memory intensity and activity factor of each launch, computed as far as it decides them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import (
    COUNT_WARP_LEVEL,
    EXCLUDE_PRED_OFF,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    Variable,
    WaveVariable,
    u32,
    u64,
)
from luthier_py.base.errors import Unsupported
from luthier_py.base.storage import cache_key
from luthier_py.isa import OpFlag
from luthier_py.program.analysis import GivenLaunch, LaunchInvariants, StaticCounts, count_statically
from luthier_py.program.ir import Function, Instr
from luthier_py.rewrite.tool import SUM, Amount, Amounts, Counted, OfSeveral, Region, combined, share
from luthier_py.tools.instr_count.hooks import add, add_lanes, count_steps, flush

_VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS | OpFlag.EXPORT
_WRAPS = 1 << 64
_WAVES = -1       # a place that each wave comes to once
_REMEMBERED = 64  # launches of a kernel that ended in different numbers
AMOUNTS: Amounts = {
    **{name: SUM.of(what) for name, what in {
        "instructions": "executed instructions", "computed": "executed instructions that were computed",
        "classes": "waves that were walked", "memory_instructions": "executed instructions",
        "vector_instructions": "executed instructions", "active_lanes": "lanes that executed",
        "computed_lanes": "lanes that executed, computed"}.items()},
    "memory_intensity": share("memory_instructions", "instructions", "of executed instructions", nothing=0.0),
    "activity_factor": Amount(OfSeveral.WORKED_OUT, "active part of all lanes", more_is_better=True),
}  # fmt: skip


def is_vector(instr: Instr) -> bool:
    """Whether it does something in each lane that is active."""
    return bool(instr.op.flags & _VECTOR)


def is_memory(instr: Instr) -> bool:
    return instr.memory is not None


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Computable:
    """What a report adds to what was measured. ``executions``: places of code that is launch-invariant, and what one
    execution adds to each metric; ``lanes``: places of ranges with one EXEC, and their vector instructions. Both are
    added to while the kernel is instrumented."""

    code: str
    """That of its code object: of an equal one, what was computed holds as well."""
    body: int
    """The address of the kernel's own function, which each wave enters once."""
    launch_invariants: LaunchInvariants
    executions: list[tuple[int, tuple[int, ...]]]
    lanes: list[tuple[int, int]]

    def places_of(self, counted: Counted, known: Collection[int]) -> Collection[int] | None:
        """Where code begins that runs as often, and that is launch-invariant: one of equal pieces, or all calls."""
        if isinstance(counted.where, Region):
            return [each.first.pc for each in counted.where.stretches if each.first.pc in known][:1] or None
        if not isinstance(counted.where, Function):
            return None
        return (
            (_WAVES,)
            if counted.where.address == self.body
            else self.launch_invariants.entered.get(counted.where.address)
        )

    def amounts(self, told: StaticCounts, metrics: int) -> list[int]:
        """Of each metric, and active lanes at the end."""
        runs, found = {**told.executions, _WAVES: told.waves}, [0] * metrics
        for pc, amounts in self.executions:
            found = [total + runs.get(pc, 0) * each for total, each in zip(found, amounts, strict=True)]
        return [*found, sum(told.lanes.get(pc, 0) * count for pc, count in self.lanes)]


@dataclass(frozen=True, slots=True)
class Notes:
    """Of a program; ``plans`` by kernel, but not of those that share a body."""

    wave_size: int
    plans: Mapping[str, Computable]


class WaveMetrics(Tool):
    """Instructions, memory intensity and activity factor of each launch. What arguments and ids decide is computed;
    only the rest is counted in the kernel.
    """

    name = "wave_metrics"
    cacheable = True
    amounts = AMOUNTS
    wants_arguments = True
    reports_untouched = True
    per_wave = COUNT_WARP_LEVEL.only(True)
    active_only = EXCLUDE_PRED_OFF.only(False)
    foresee = Option(True, help="0: all is counted in the kernel, to compare")
    metrics = Option("all", choices=("all", "instructions"), help="instructions: their number alone")

    instructions = Variable(u64)
    memory = Variable(u64)
    vector = Variable(u64)
    lanes = Variable(u64)
    instruction_count = WaveVariable(u64)
    memory_count = WaveVariable(u64)
    vector_count = WaveVariable(u64)
    lane_count = WaveVariable(u64)
    begun = WaveVariable(u32)  # what a loop's register held before it

    @property
    def all(self) -> bool:
        return bool(self.metrics == "all")

    @property
    def measured(self) -> Sequence[tuple[Variable, WaveVariable]]:
        """Of each metric the sum over waves, and each wave's own; lanes come last."""
        every = ((self.instructions, self.instruction_count), (self.memory, self.memory_count),
                 (self.vector, self.vector_count), (self.lanes, self.lane_count))
        return every if self.all else every[:1]

    def instrument(self, m: Mutator) -> Notes:
        plans, used = self.plans(m), dict[Function, set[WaveVariable]]()
        reached = {kernel: frozenset(m.functions(kernel)) for kernel in m.kernels}
        for function in m.functions():
            reaching = [plans.get(kernel.name) for kernel in m.kernels if function in reached[kernel]]
            sure = [plan for plan in reaching if plan is not None]
            used[function] = self.counted(m, function, sure if len(sure) == len(reaching) else [])
        for kernel in m.kernels:
            counts = {count for function in reached[kernel] for count in used[function]}
            for total, count in self.measured:
                if count in counts:
                    m.at_exit(kernel, flush, total, count)
        return Notes(m.program.isa.wave_size, plans)

    def plans(self, m: Mutator) -> dict[str, Computable]:
        bodies, code = Counter(kernel.function for kernel in m.kernels), cache_key(m.program.obj.data)
        return {kernel.name: Computable(code, kernel.function.address, m.facts.find_launch_invariants(kernel), [], [])
                for kernel in m.kernels if self.foresee and bodies[kernel.function] == 1}

    def counted(self, m: Mutator, function: Function, plans: Sequence[Computable]) -> set[WaveVariable]:
        """Count what is not launch-invariant of each kernel that comes here, and add the rest to ``plans``. The answer:
        what it is counted in."""
        known = frozenset.intersection(*(plan.launch_invariants.pcs for plan in plans)) if plans else frozenset()
        counting, used = m.counting(function, known), set[WaveVariable]()
        amounts = [[sum(map(counts, stretch.instrs)) for stretch in counting.stretches]
                   for counts in (lambda instr: 1, is_memory, is_vector)][: len(self.measured)]
        weights = zip(*map(counting.following.weights, amounts), strict=True)
        for counted, weight in zip(counting.counters, weights, strict=True):
            places = [plan.places_of(counted, known) for plan in plans]
            if not places or None in places:
                used |= self.count(m, counted, weight)
                continue
            for plan, found in zip(plans, places, strict=True):
                plan.executions.extend((place, weight) for place in found or ())
        return used | self.count_lanes(m, function, plans)

    def count(self, m: Mutator, counted: Counted, weights: Sequence[int]) -> set[WaveVariable]:
        """Those that it is counted in."""
        wanted = {count: weight % _WRAPS for (_, count), weight in zip(self.measured, weights, strict=False) if weight}
        if counted.steps is not None and wanted:
            count_steps(m, counted.steps, self.begun, wanted)
        else:
            for count, weight in wanted.items():
                m.at_counted(counted, add, count, weight, into=count)
        return set(wanted)

    def count_lanes(self, m: Mutator, function: Function, plans: Sequence[Computable]) -> set[WaveVariable]:
        """Active lanes of vector instructions, where EXEC is not launch-invariant."""
        known = frozenset.intersection(*(plan.launch_invariants.masks for plan in plans)) if plans else frozenset()
        used = set[WaveVariable]()
        for stretch in [each for block in function.blocks for each in m.stretches(block)] if self.all else ():
            vectors = sum(map(is_vector, stretch.instrs))
            if vectors and stretch.first.pc in known:
                for plan in plans:
                    plan.lanes.append((stretch.first.pc, vectors))
            elif vectors:
                used.add(self.lane_count)
                m.at_stretch(stretch, add_lanes, self.lane_count, vectors, into=self.lane_count, anywhere=True)
        return used

    def told(self, plan: Computable, launch: LaunchResult) -> StaticCounts:
        """What was computed for an earlier launch holds where all that it follows from is the same."""
        if launch.arguments is None and plan.launch_invariants.stops:
            raise Unsupported(f"kernel {launch.kernel}: the arguments of this launch are not known here")
        given = GivenLaunch(launch.arguments or b"", launch.grid, launch.block)
        before: dict[tuple[Any, ...], list[StaticCounts]] = self.gathered
        known = before.setdefault((plan.code, launch.kernel, launch.grid, launch.block), [])
        for told in known:
            if told.holds_for(given):
                return told
        known.append(count_statically(plan.launch_invariants, given))
        del known[:-_REMEMBERED]
        return known[-1]

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Notes = launch.notes
        plan = notes.plans.get(launch.kernel)
        measured = [launch[total] for total, _ in self.measured]
        computed, classes = [0] * len(measured), 0
        if plan is not None:
            try:
                told = self.told(plan, launch)
            except Unsupported as error:
                why = f"{error.message}; FORESEE=0 counts all of it in the kernel"
                return {"left_out": [{"function": launch.kernel, "why": why}]}
            computed = plan.amounts(told, 3 if self.all else 1)[: len(measured)]
            classes = told.walks if plan.launch_invariants.stops else 0
        total = [(a + b) % _WRAPS for a, b in zip(measured, computed, strict=True)]
        found = {"instructions": total[0], "computed": computed[0], "classes": classes}
        if self.all:
            found |= {"memory_instructions": total[1], "memory_intensity": ratio(total[1], total[0]),
                      "vector_instructions": total[2], "active_lanes": total[3],
                      "activity_factor": ratio(total[3], total[2] * notes.wave_size),
                      "computed_lanes": computed[3]}
        return found

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        if "left_out" in report:
            return f"{self.headline(launch)}, not counted: {report['left_out'][0]['why']}"
        parts = [self.headline(launch), f"instructions {report['instructions']}"]
        if self.all:
            parts += [f"memory intensity {report['memory_intensity']:.4f}",
                      f"activity factor {report['activity_factor']:.4f}"]
        return ", ".join([*parts, self.provenance(report)])

    def provenance(self, report: dict[str, Any]) -> str:
        """What was computed, and what was measured."""
        share = 100 * ratio(report["computed"], report["instructions"])
        classes = f"{report['classes']} class{'es' if report['classes'] > 1 else ''} of waves"
        if not report["classes"]:
            return "all measured"
        lanes = f", {100 * ratio(report['computed_lanes'], report['active_lanes']):.1f} % of lanes" if self.all else ""
        return f"computed {share:.1f} %{lanes} from {classes}"

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """Sums; nothing where a launch was not counted."""
        if any("left_out" in report for report in reports):
            return None
        found = combined(AMOUNTS, reports)
        if self.all:
            lanes = [report["active_lanes"] / report["activity_factor"] for report in reports if report["active_lanes"]]
            found["activity_factor"] = ratio(found["active_lanes"], sum(lanes))
        return found
