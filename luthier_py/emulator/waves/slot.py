"""A place for one resident work-group: its memory, and whether it still gets anywhere.

In: a launch's shape and addresses. Out: records for the scheduler. Invariant: a work-group that stands still is in a
state in which it was before, and no memory has changed since: it loops until some does.
"""

from __future__ import annotations

import hashlib
import struct

from luthier_py.base.records import dataclass
from luthier_py.emulator.memory.device_memory import write_bytes
from luthier_py.emulator.memory.pool import PagePool
from luthier_py.emulator.records.budgets import SLICES, budget
from luthier_py.emulator.records.layout import (
    GROUP,
    NAMED_BARRIERS_BYTES,
    WAVE,
    WAVE_HEADER_BYTES,
    ZERO_ROW,
    Status,
    row_offset,
    sgpr_offset,
    wave_stride,
)
from luthier_py.emulator.records.words import address_of
from luthier_py.emulator.waves.launch import LaunchMemory, Residence, image_stride, record, wave_images
from luthier_py.emulator.waves.shape import Shape
from luthier_py.isa.model.registers import EXEC

_LINE = 64
_WORD = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Standing:
    """One wave of a resident work-group. ``pc`` is absolute, where it continues."""

    group: int
    wave: int
    status: Status
    pc: int
    active: int         # lanes
    masked_off: int     # lanes that have a work-item and are not active
    in_circle: bool     # it was in this state before, and no memory has changed since


class ResidentGroup:
    """Mutable: memory for one resident work-group."""

    def __init__(self, pool: PagePool, shape: Shape, places: LaunchMemory, entry: int, worker: int) -> None:
        self._stride, self._shape = wave_stride(shape.wave_size), shape
        waves = self._stride * shape.waves
        images = image_stride(shape) * shape.waves * (shape.edges + 1)
        lds = -(-max(shape.lds_bytes, 1) // _LINE) * _LINE
        scratch = shape.scratch_bytes * shape.wave_size
        shared = NAMED_BARRIERS_BYTES + lds
        self.block = pool.take(waves + images + shared + scratch * shape.waves + _LINE)
        self.waves = self.block.address
        barriers = self.waves + waves + images
        at_lds = barriers + NAMED_BARRIERS_BYTES
        self.images = self.waves + waves
        self.record = record(GROUP, waves=self.waves, images=self.images, lds=at_lds, slice=budget(SLICES[0]))
        home = Residence(worker, at_lds, at_lds + lds, scratch, self.address, barriers)
        self.scratch = home.scratch
        write_bytes(self.images, wave_images(shape, places, entry, home))
        everything = memoryview(self.block.memory)
        self._waves = everything[:waves]
        row = row_offset(ZERO_ROW, shape.wave_size)
        for zeros in range(row, waves, self._stride):
            self._waves[zeros : zeros + 4 * shape.wave_size] = bytes(4 * shape.wave_size)
        self._memory = everything[waves + images : waves + images + shared + scratch * shape.waves]
        self.over = False
        """No work-group is in it, and none will be."""
        self._effort = 0
        self._group = -1
        self.still_at = -1
        """How often memory had changed when this work-group was found to stand still; -1 if it was not."""
        self._circled = -1  # the same, of the last time when it was
        self._reference: tuple[bytes, bytes | None] = (b"", None)  # an earlier state: its headers, and all of it
        self._changes = self._age = self._limits = 0             # when that was, visits since, and until the next

    @property
    def address(self) -> int:
        """Host address of the work-group's record (layout's GROUP)."""
        return address_of(self.record)

    @property
    def active(self) -> bool:
        """Whether there is a work-group in it that has begun and not ended."""
        return bool(self.record[GROUP["active"] // 8])

    @property
    def group(self) -> int:
        """Number in the launch of the work-group that is in it, x fastest; of use while it is ``active``."""
        return int(self.record[GROUP["index"] // 8])

    def wave_field(self, wave: int, name: str) -> int:
        """A field of a wave's record, by its name in layout's WAVE; ``wave``: its number in the work-group."""
        value: int = _WORD.unpack_from(self._waves, wave * self._stride + WAVE[name])[0]
        return value

    def standings(self, changes: int) -> list[Standing]:
        """Where the waves are, now that memory has changed ``changes`` times."""
        numbers = range(self._shape.waves_in(self.group) if self.active else 0)
        return [self._read_wait_state(wave, self._circled == changes) for wave in numbers]

    def _read_wait_state(self, wave: int, in_circle: bool) -> Standing:
        lanes = self._shape.lanes_in(self.group, wave)
        (exec_,) = _WORD.unpack_from(self._waves, wave * self._stride + sgpr_offset(EXEC))
        return Standing(self.group, wave, Status(self.wave_field(wave, "status")), self.wave_field(wave, "pc"),
                        exec_ & lanes, lanes & ~exec_, in_circle)

    def renew(self) -> None:
        """It was given other work-groups than those that were looked at."""
        self.over, self._group = False, -1

    def has_moved_on(self) -> bool:
        """Whether there is another work-group in it than a span of rounds before."""
        if self.group != self._group:
            self._group, self._circled = self.group, -1
            self._refer(b"", None, 0)
            self.set_effort(0)
        return int(self.record[GROUP["spans"] // 8]) <= 1

    def set_effort(self, effort: int) -> bool:
        """Turns of this length from now on; False if there are none that long."""
        if effort < len(SLICES):
            self._effort = effort
            self.record[GROUP["slice"] // 8] = budget(SLICES[effort])
        return effort < len(SLICES)

    def lengthen_turns(self) -> bool:
        """Give each wave more steps before the next one gets its turn; False if turns are as long as they get."""
        return self.set_effort(self._effort + 1)

    def look(self, changes: int) -> bool:
        """Whether it stands still, now that memory has changed ``changes`` times (Brent's search for a circle)."""
        starts = range(0, len(self._waves), self._stride)
        headers = b"".join(self._waves[start : start + WAVE_HEADER_BYTES] for start in starts)
        if changes != self._changes:
            self._refer(headers, None, changes)
            return False
        if headers == self._reference[0]:
            state = self._state()
            if state == self._reference[1]:
                self.still_at = self._circled = changes
                return True
            if self._reference[1] is None:
                self._reference = headers, state
        self.still_at = -1
        self._age += 1
        if self._age > self._limits:
            limits = 2 * self._limits + 1
            self._refer(headers, None, changes)
            self._limits = limits
        return False

    def _refer(self, headers: bytes, state: bytes | None, changes: int) -> None:
        self._reference, self._changes = (headers, state), changes
        self._age = self._limits = 0
        self.still_at = -1

    def _state(self) -> bytes:
        found = hashlib.blake2b(self._waves, digest_size=16)
        found.update(self._memory)
        return found.digest()
