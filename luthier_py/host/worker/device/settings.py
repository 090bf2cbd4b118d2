"""What the environment sets of an emulated device beside its target: its memory's size, where counts are written.

In: the environment. Out: DeviceSettings, checked. Invariant: what is wrong is Invalid before any launch, and names the
variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.base.storage import check_file
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.watching.findings import Reporter
from luthier_py.host.worker.device.findings import reporter
from luthier_py.host.worker.device.launch_settings import launch_options
from luthier_py.host.worker.device.recording import RecordSettings, record_settings

PROFILE = "LUTHIER_DEVICE_PROFILE"
"""A file that gets one line of JSON for each launch: what the emulator itself counted."""
MEMORY = "LUTHIER_DEVICE_MEMORY"
"""What hipMalloc may give on each device: bytes, or with K, M, G or T."""
MEMORY_BYTES = 16 << 30  # unless MEMORY says otherwise

GRANULARITY = "LUTHIER_MEMORY_GRANULARITY"
"""To a multiple of so many bytes kernels may touch what lies behind an allocation's end: a power of two."""
FINE_ATOMICS = "LUTHIER_FINE_ATOMICS"
"""1: float atomics work in fine-grained memory, too, where they do nothing on hardware."""
_LARGEST_GRANULARITY = 2 << 20


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """``profile``: a file, or None."""

    memory_bytes: int
    granularity: int
    fine_atomics: bool
    profile: str | None
    launch: LaunchOptions
    report: Reporter
    record: RecordSettings | None = None

    @property
    def counts(self) -> bool:
        """Whether a profile or a recording needs the emulator's counts."""
        return self.profile is not None or self.record is not None


def device_settings(environment: Mapping[str, str]) -> DeviceSettings:
    """Invalid with the first variable that is wrong."""
    return DeviceSettings(
        profile=parse_profile(environment.get(PROFILE, "")),
        memory_bytes=parse_memory(environment.get(MEMORY, "")),
        granularity=parse_granularity(environment.get(GRANULARITY, "")),
        fine_atomics=parse_fine_atomics(environment.get(FINE_ATOMICS, "")),
        launch=launch_options(environment),
        report=reporter(environment),
        record=record_settings(environment),
    )


def parse_granularity(text: str) -> int:
    """Bytes, by LUTHIER_MEMORY_GRANULARITY; 1 where an allocation ends at its last byte."""
    size = int(text) if re.fullmatch(r"\d{1,9}", text.strip()) else 0
    if text and not (0 < size <= _LARGEST_GRANULARITY and size & (size - 1) == 0):
        raise Invalid(f"{GRANULARITY}=`{text}`: give a power of two up to {_LARGEST_GRANULARITY}, 4096 as a GPU has it")
    return size or 1


def parse_fine_atomics(text: str) -> bool:
    """Whether float atomics work in fine-grained memory, by LUTHIER_FINE_ATOMICS."""
    if text not in ("", "0", "1"):
        raise Invalid(f"{FINE_ATOMICS}=`{text}`: give 0 or 1")
    return text == "1"


def parse_memory(text: str) -> int:
    """Bytes of each device, by LUTHIER_DEVICE_MEMORY."""
    match = re.fullmatch(r"(\d{1,15})([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(match[1]) << (("", *"KMGT").index(match[2].upper()) * 10) if match else 0
    if text and not size:
        raise Invalid(f"{MEMORY}=`{text}`: give the memory of each device in bytes, or as 512M or 64G, for example")
    return size or MEMORY_BYTES


def parse_profile(text: str) -> str | None:
    """The file in LUTHIER_DEVICE_PROFILE, by which no launch is to fail."""
    if text:
        check_file(Path(text), f"{PROFILE}={text}", in_place=True)
    return text or None
