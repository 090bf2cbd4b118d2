"""What code objects hold, as data and as text.

In: the parts of a file, one at a time. Out: lines, as they are known. Invariant: of a file with many objects only one
is in memory at a time, so that memory does not depend on the size of the file; what could not be read is reported in
its place.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from luthier_py.base.errors import printable
from luthier_py.base.names import demangle, is_region
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import Broken, CodeObject, KernelRecord
from luthier_py.program.analysis.lines import source_lines
from luthier_py.report.columns import align_columns

if TYPE_CHECKING:
    from luthier_py.report.plain import Json

MANY = 16  # objects from which on a line is written for each, and not its kernels
LEFT_OUT_LINES = 5  # of an object; --json has all
_KERNEL_COLUMNS = ("entry", "SGPRs", "VGPRs", "waves/SIMD", "LDS", "private", "kernarg", "kernel")
_OBJECT_ROW = "{:>6}  {:30}  {:>7}  {:>7}  {:>12}  {}"


def describe(obj: CodeObject) -> Json:
    """JSON-ready facts; sizes in bytes."""
    kernels = [kernel_facts(obj, kernel) for kernel in obj.kernels]
    if any(is_region(kernel.name) for kernel in obj.kernels):
        _add_regions(obj, kernels)
    return {**_head(obj), "kernels": kernels}


def _add_regions(obj: CodeObject, kernels: list[Json]) -> None:
    """Where OpenMP's target regions stand: functions and lines are in their names, files in line tables, if at all."""
    lines = source_lines(obj)
    for kernel in kernels:
        if is_region(kernel["name"]):
            found = lines.at(kernel["entry"])
            kernel["region"] = demangle(kernel["name"]) + (f" of {found.file}" if found else "")


def _head(obj: CodeObject) -> Json:
    return {
        "file": obj.name,
        "target": obj.target.name,
        "code_object_version": obj.version,
        "xnack": obj.xnack.name.lower(),
        "sramecc": obj.sramecc.name.lower(),
        "text_bytes": sum(len(r) for r in obj.text_ranges),
        "left_out": [{"name": part.name, "reason": str(part.error)} for part in obj.left_out],
    }


def kernel_facts(obj: CodeObject, kernel: KernelRecord) -> Json:
    """What one kernel asks of the device."""
    descriptor = kernel.descriptor
    vgprs, sgprs = descriptor.vgpr_count(obj.target), descriptor.sgpr_count(obj.target)
    return {
        "name": kernel.name,
        "entry": kernel.entry,
        "wave_size": descriptor.wave_size,
        "sgprs": sgprs,
        "vgprs": vgprs,
        "waves_per_simd": obj.target.waves_for(vgprs, sgprs, descriptor.group_segment_fixed_size, kernel.max_workitems,
                                               descriptor.wave_size),
        "lds_bytes": descriptor.group_segment_fixed_size,
        "private_bytes": descriptor.private_segment_fixed_size,
        "kernarg_bytes": descriptor.kernarg_size,
        "arguments": [
            {"name": a.name, "offset": a.offset, "size": a.size, "kind": a.value_kind}
            for a in kernel.own_args
        ] if kernel.states_arguments else None,
    }


def info_json(
    parts: Iterable[CodeObject | Broken], told: Callable[[CodeObject], Json] = describe
) -> Iterator[str]:
    """One JSON document in pieces: what is ``told`` of an object, or a list of that where there are several."""
    facts = (_describe_broken(part) if isinstance(part, Broken) else told(part) for part in parts)
    first = list(islice(facts, 2))
    if len(first) == 1:
        yield json.dumps(first[0], indent=2)
        return
    before = "["
    for row in chain(first, facts):
        yield before + "\n  " + json.dumps(row, indent=2).replace("\n", "\n  ")
        before = ","
    yield "\n]"


def _describe_broken(part: Broken) -> Json:
    return {"file": part.name, "error": str(part.error)}


def info_lines(parts: Iterable[CodeObject | Broken], kernels: bool = False) -> Iterator[str]:
    """Text for people: objects with their kernels where there are few, or if ``kernels`` are requested; else a line
    for each object, and sums."""
    parts = iter(parts)
    if not kernels:
        pending = [(_whole(part), _summary(part)) for part in islice(parts, MANY + 1)]
        if len(pending) > MANY:
            yield from _summaries(chain((summary for _, summary in pending), map(_summary, parts)))
            return
        yield from chain.from_iterable(lines for lines, _ in pending)
    for part in parts:
        yield from _whole(part)


@dataclass(frozen=True, slots=True)
class _Summary:
    target: str
    version: int
    kernels: int
    text_bytes: int
    notes: list[str]


def _summary(part: CodeObject | Broken) -> _Summary:
    if isinstance(part, Broken):
        return _Summary("broken", 0, 0, 0, [printable(str(part.error))])
    facts = _head(part)
    return _Summary(str(part.target_id), part.version, len(part.kernels), facts["text_bytes"],
                    _describe_left_out(facts))


def _summaries(rows: Iterable[_Summary]) -> Iterator[str]:
    yield _OBJECT_ROW.format("object", "target", "version", "kernels", "code bytes", "").rstrip()
    kernels: Counter[str] = Counter()
    objects: Counter[str] = Counter()
    text_bytes = 0
    for number, row in enumerate(rows):
        cells = (number, row.target, row.version, row.kernels, row.text_bytes, "; ".join(row.notes))
        yield _OBJECT_ROW.format(*cells).rstrip()
        kernels[row.target] += row.kernels
        objects[row.target] += 1
        text_bytes += row.text_bytes
    targets = ", ".join(f"{target} {objects[target]} with {kernels[target]}" for target in sorted(objects))
    yield f"{objects.total()} objects with {kernels.total()} kernels, {text_bytes} bytes of code: {targets}"
    yield "--kernels lists the kernels"


def _whole(part: CodeObject | Broken) -> list[str]:
    """An object and its kernels."""
    if isinstance(part, Broken):
        return [printable(f"{part.name}: broken: {part.error}")]
    facts = describe(part)
    head = (
        f"{facts['file']}: {facts['target']}, code object v{facts['code_object_version']}, "
        f"xnack {facts['xnack']}, sramecc {facts['sramecc']}, {facts['text_bytes']} bytes of code"
    )
    table = align_columns(_KERNEL_COLUMNS, map(_row, facts["kernels"]), left=1) if facts["kernels"] else "no kernels"
    return [printable(head), *table.split("\n"), *_describe_left_out(facts)]


def _row(kernel: Json) -> list[str]:
    numbers = ("sgprs", "vgprs", "waves_per_simd", "lds_bytes", "private_bytes", "kernarg_bytes")
    stated = kernel["arguments"]
    arguments = "?" if stated is None else " ".join(
        f"{a['name'] or '?'}:{a['size']}{'*' if 'buffer' in a['kind'] else ''}" for a in stated
    )
    region = f": {kernel['region']}" if "region" in kernel else ""
    shown = demangle(kernel["name"]) if not region else kernel["name"]
    name = f"{shown}({arguments})" if shown == kernel["name"] else f"{shown} ({arguments})"
    return [f"0x{kernel['entry']:x}", *(str(kernel[key]) for key in numbers), printable(f"{name}{region}")]


def _describe_left_out(facts: Json) -> list[str]:
    """A line for each of the first kernels and symbols that could not be read."""
    rows = facts["left_out"]
    lines = [printable(f"left out: {row['name']}: {row['reason']}") for row in rows[:LEFT_OUT_LINES]]
    more = len(rows) - len(lines)
    return [*lines, f"left out: {more} more"] if more else lines
