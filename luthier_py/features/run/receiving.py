"""The host's end of a tool's channels on a device that this process drives.

In: a device, channels, and who takes the slots. Out: rings in memory that device and host share, emptied by a thread
while kernels run. Invariant: when ``drain_all`` returns, everything that launches before it pushed was passed on.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luthier_py.base.errors import DeviceError
from luthier_py.emulator import EmulatorDevice
from luthier_py.rewrite.tool import Channel
from luthier_py.rewrite.tool.records.channel import Full
from luthier_py.rewrite.tool.records.ring import (
    DROPPED,
    HEAD_BYTES,
    RESERVED,
    RingReader,
    cell_words,
    head_words,
    ring_bytes,
)

if TYPE_CHECKING:
    from luthier_py.emulator.interface import Buffer, Device, Module

IDLE_SECONDS = 0.0005  # between looks at rings that were empty

Take = Callable[[Channel, NDArray[Any]], None]


class ChannelEnd:
    """Mutable: one channel's head and ring. To the emulator, an external writer of memory while kernels run."""

    def __init__(self, device: Device, channel: Channel) -> None:
        self.channel, self._device = channel, device
        self._head = device.alloc(HEAD_BYTES)
        self._ring: Buffer = device.alloc_shared(ring_bytes(channel))
        device.write(self._head.address, head_words(channel, self._ring.address))
        bytes_of_ring = (ctypes.c_uint8 * self._ring.size).from_address(self._ring.address)
        self.reader = RingReader(channel, np.ctypeslib.as_array(bytes_of_ring))

    @property
    def changes(self) -> int:
        """How many records the host has taken: each time it is more, a wave that waits for room may go on
        (`ExternalWriter`)."""
        return self.reader.taken

    def will_write(self) -> bool:
        """Whether waves have reserved records that the host has not taken, so that it is going to move ``taken``
        (`ExternalWriter`)."""
        return self.reader.taken != self.word(RESERVED)

    def word(self, number: int) -> int:
        """One of the head's words of 64 bits, read from the device; ``number``: as `tool.ring` names them."""
        return int.from_bytes(self._device.read(self._head.address + 8 * number, 8), "little")

    def connect(self, module: Module, launch: int) -> None:
        """The next launch of this module's kernels pushes here."""
        self._device.write(module.variable(self.channel.name).address, cell_words(self._head.address, launch))

    def free(self) -> None:
        """Give head and ring back; the reader's memory is gone with them."""
        self._device.free(self._head)
        self._device.free_shared(self._ring)


class Receiving:
    """Mutable: all channels of a tool on one device; a context manager. ``take`` is called in a separate thread."""

    def __init__(self, device: Device, channels: Sequence[Channel], take: Take) -> None:
        self._device, self._take = device, take
        self.ends = {channel: ChannelEnd(device, channel) for channel in channels}
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name="luthier channels", daemon=True)
        self._failure: Exception | None = None

    def __enter__(self) -> Receiving:
        if isinstance(self._device, EmulatorDevice):
            self._device.external_writers += self.ends.values()
        if self.ends:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._stop.set()
        if self.ends:
            self._thread.join()
        for end in self.ends.values() if error is not None else ():  # what was pushed before the launch failed
            self._drain(end)  # as far as the ring's end, and then from its beginning
            self._drain(end)
        if isinstance(self._device, EmulatorDevice):
            for end in self.ends.values():
                self._device.external_writers.remove(end)
        for end in self.ends.values():
            end.free()

    def connect(self, module: Module, channels: Sequence[Channel], launch: int) -> None:
        """Before a launch: the channels of its module lead here."""
        for channel in channels:
            self.ends[channel].connect(module, launch)

    def drain_all(self) -> dict[Channel, int]:
        """Pass on all that a launch pushed, after its end; how many records each channel has dropped so far."""
        for end in self.ends.values():
            while end.will_write():
                self._drain(end)
        if self._failure is not None:
            raise self._failure
        for end in self.ends.values():
            if end.channel.full is Full.STOP and end.word(DROPPED):
                raise DeviceError(f"{end.channel} was full: the launch was stopped, as full=\"stop\" says")
        return {channel: end.word(DROPPED) for channel, end in self.ends.items()}

    def _run(self) -> None:
        while not self._stop.is_set():
            if not sum(map(self._drain, self.ends.values())):
                self._stop.wait(IDLE_SECONDS)
            for end in self.ends.values():
                if end.channel.full is Full.STOP and end.word(DROPPED) and isinstance(self._device, EmulatorDevice):
                    self._device.cancel(f"{end.channel} is full")

    def _drain(self, end: ChannelEnd) -> int:
        """One step of one ring; how many records there were."""
        with self._lock:
            slots = end.reader.take()
            if len(slots):
                try:
                    self._take(end.channel, slots)
                except Exception as error:  # the tool's; `drain_all` raises it after the launch, and waves continue
                    self._failure = self._failure or error
        return len(slots)
