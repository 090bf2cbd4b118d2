"""Hand-written LLVM IR with names for the fields of layout's records.

In: text in which two lines stand for more:

    %value = get record.field of %pointer      load the u64 field
    put record.field of %pointer, %value       store it

and ``$name`` stands for a number or a type. Out: LLVM IR. Invariant: records and fields are those of layout.
"""

from __future__ import annotations

import itertools
import re
from string import Template

from luthier_py.emulator.records.layout import ALLOCATION, GROUP, LAUNCH, READY, SITE, WAVE, WORKER

_RECORDS = {"wave": WAVE, "worker": WORKER, "launch": LAUNCH, "group": GROUP, "site": SITE, "allocation": ALLOCATION,
            "ready": READY}
_GET = re.compile(r"^ *(%[\w.]+) = get (\w+)\.(\w+) of (%[\w.]+)$", re.MULTILINE)
_PUT = re.compile(r"^ *put (\w+)\.(\w+) of (%[\w.]+), (\S+)$", re.MULTILINE)


def expand(text: str, **numbers: int | str) -> str:
    """The IR that ``text`` stands for."""
    count = itertools.count()

    def get(match: re.Match[str]) -> str:
        name, record, field, pointer = match.groups()
        place = f"%field.{next(count)}"
        return (f"  {place} = getelementptr i8, ptr {pointer}, i64 {_RECORDS[record][field]}\n"
                f"  {name} = load i64, ptr {place}")

    def put(match: re.Match[str]) -> str:
        record, field, pointer, value = match.groups()
        place = f"%field.{next(count)}"
        return (f"  {place} = getelementptr i8, ptr {pointer}, i64 {_RECORDS[record][field]}\n"
                f"  store i64 {value}, ptr {place}")

    return _PUT.sub(put, _GET.sub(get, Template(text).substitute(numbers)))
