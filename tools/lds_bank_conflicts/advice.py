"""Causes and remedies of a launch's conflicts, as data and as lines.

In: a launch whose accesses were sampled. Out: ``causes`` by instruction and ``remedies`` of the kernel; nothing where
they were not sampled. Invariant: ``sampled_cycles`` is reported beside ``cycles``, so a reader sees whether samples
represent all accesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from luthier_py import LaunchResult
from luthier_py.isa.timing.lds_banks import bank_model

from .remedies import cause_of, remedies, sampled_cycles
from .results import Sites
from .samples import samples_of


def advice_of(launch: LaunchResult) -> dict[str, Any]:
    counted: Sites = launch.notes
    if counted.samples is None:
        return {}
    model, wave_size = bank_model(counted.program.obj.target), counted.program.isa.wave_size
    reached = counted.reached(launch.kernel)
    sites = [(number, site) for number, site in enumerate(counted.sites) if site.function in reached]
    samples = samples_of(sites, launch[counted.samples], wave_size)
    by_pc = {pc: [sample for sample in samples if sample.site.instr.pc == pc]
             for pc in dict.fromkeys(sample.site.instr.pc for sample in samples)}
    causes = {pc: cause_of(own, model, wave_size) for pc, own in by_pc.items()}
    return {
        "sampled_cycles": sum(sampled_cycles(samples, model, wave_size).values()),
        "causes": [{"pc": pc, **cause} for pc, cause in causes.items() if cause is not None],
        "remedies": [each.facts() for each in remedies(samples, model, wave_size)],
    }


def combined_advice(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The worst cause of each instruction; of the remedies those that all launches with conflicts have, summed up."""
    if "causes" not in reports[0]:
        return {}
    causes: dict[int, Any] = {}
    for cause in (cause for report in reports for cause in report["causes"]):
        causes[cause["pc"]] = max(causes.get(cause["pc"], cause), cause, key=lambda each: each["deepest"])
    wanting = [report for report in reports if report["causes"]]
    common = [each for each in (wanting[0]["remedies"] if wanting else ()) if all(_find(r, each) for r in wanting)]
    return {
        "sampled_cycles": sum(report["sampled_cycles"] for report in reports),
        "causes": list(causes.values()),
        "remedies": [_summed(each, [_find(report, each) or _as_it_is(report) for report in reports])
                     for each in common],
    }  # fmt: skip


def _find(report: Mapping[str, Any], remedy: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((each for each in report["remedies"] if each["text"] == remedy["text"]), None)


def _as_it_is(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a launch without conflicts takes."""
    rows = [{"pc": row["pc"], "cycles": row["cycles"]} for row in report["instructions"] if row["accesses"]]
    return {"cycles": sum(row["cycles"] for row in rows), "instructions": rows}


def _summed(remedy: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    cycles: dict[int, int] = {}
    for row in (row for part in parts for row in part["instructions"]):
        cycles[row["pc"]] = cycles.get(row["pc"], 0) + row["cycles"]
    rows = [{"pc": pc, "cycles": count} for pc, count in cycles.items()]
    return {**remedy, "cycles": sum(cycles.values()), "instructions": rows}


def advice_text(report: Mapping[str, Any]) -> Iterator[str]:
    """Lines for people, one for all instructions of an opcode with the same cause; in the order of the report's
    instructions."""
    causes, alike = {cause["pc"]: cause["text"] for cause in report.get("causes", ())}, dict[Any, list[Any]]()
    for row in report["instructions"]:
        if row["pc"] in causes:
            alike.setdefault((row["instruction"].split()[0], causes[row["pc"]]), []).append(row)
    for (opcode, text), (first, *others) in alike.items():
        more = f" and {len(others)} more {opcode}" if others else ""
        yield f"{first['pc']:#x} {first['instruction']}{more}: {text}"
    now, free = report["total"]["cycles"], report["total"]["conflict_free_cycles"]
    for remedy in report.get("remedies", ()):
        left = "no conflict is left" if remedy["cycles"] <= free else f"{remedy['cycles'] / free:.3g}x"
        about = "about " * (report["sampled_cycles"] != now)
        yield f"{remedy['text']}: {about}{remedy['cycles']} cycles instead of {now}, {left}"
    if report.get("causes") and not report["remedies"]:
        yield "no padding and no swizzle of rows of 32 to 4096 bytes helps"
