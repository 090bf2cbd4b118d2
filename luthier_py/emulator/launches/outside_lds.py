"""What lanes did outside of their work-group's LDS, where reads give 0 and writes are dropped.

In: the record of a worker, where native code notes it (resolve). Out: words about the last such instruction.
Invariant: a record without a note gives none.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.emulator.code.code import HostedCode, Tally
from luthier_py.emulator.code.code_place import code_place
from luthier_py.emulator.records.layout import SITE_BYTES, WORKER
from luthier_py.emulator.records.words import Words
from luthier_py.emulator.waves.shape import Shape


def outside_lds(worker: Words, tallies: Mapping[HostedCode, Tally], shape: Shape) -> tuple[str, ...]:
    """``tallies``: of the codes that the worker has run."""
    site = worker[WORKER["outside_lds"] // 8]
    for code, tally in tallies.items() if site else ():
        number = (site - tally.places[1]) // SITE_BYTES
        if number in range(len(code.numbers.sites)):
            where = code_place(code.base + code.numbers.sites[number], list(tallies))
            return (f"{where}: lanes are outside of their work-group's {shape.lds_bytes} bytes of LDS; as on a GPU, "
                    "they read 0 there, and write nothing. --check bounds tells of what is less than 1 MiB away",)
    return ()
