"""Which user-space stack a program has below it on the emulator: our HIP runtime, or ROCm's own.

In: the name of a stack, a device. Out: what the program's environment and command line need. ``rocm`` is the ROCm that
is installed; ``rocm-7.2`` one that was fetched (:mod:`luthier_py.host.releases`), and ``luthier-7.2`` our HIP runtime
with all other libraries of that one. Invariant: with an installed ROCm nothing changes which libraries the program
finds; one is preloaded, the device that these then find.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from ctypes.util import find_library
from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid, Unsupported, did_you_mean
from luthier_py.host.hip import runtime_folder
from luthier_py.host.releases.table import RELEASES

if TYPE_CHECKING:  # runs without a release do not import it
    from luthier_py.host.releases.fetched import FetchedRelease
    from luthier_py.isa import Target

VARIABLE = "LUTHIER_STACK"
LUTHIER, ROCM = "luthier", "rocm"
STACKS = LUTHIER, ROCM, *RELEASES, *(f"{LUTHIER}-{name.partition('-')[2]}" for name in RELEASES)
HIP_LIBRARY, HSA_LIBRARY = "libamdhip64.so", "libhsa-runtime64.so"
SYSFS = "LUTHIER_SYSFS"
"""A folder that replaces what the kernel shows of devices, for programs that have our HIP runtime."""
_PLATFORM = "Linux", "x86_64"
_POOLS = "DEBUG_HIP_MEM_POOL_VMHEAP"
"""HIP 7.2 makes memory pools of reserved addresses unless this is 0, which wants a newer driver than is emulated."""

_VIRTUAL = "HIP_VMEM_MANAGE_SUPPORT"
"""HIP takes version 1.15 of KFD's interface, without which HIP 7 has no managed memory, for a promise of virtual memory
management (hipMemCreate) unless this is 0. That wants DMA-BUFs and more of DRM, too."""

_IPC = "HSA_ENABLE_IPC_MODE_LEGACY"
"""From ROCm 6.2 on ROCr shares memory between processes as DMA-BUFs unless this is 1, which wants more of DRM."""


def choose_stack(name: str | None) -> str:
    """``name``, or what LUTHIER_STACK says, or ``luthier``."""
    chosen = name or os.environ.get(VARIABLE) or LUTHIER
    if chosen not in STACKS:
        raise Invalid(f"stack {chosen} is unknown; give one of {', '.join(STACKS)}, by --stack or {VARIABLE}"
                      f"{did_you_mean(chosen, STACKS)}")
    return chosen


def has_our_runtime(stack: str) -> bool:
    """Whether a stack is ``luthier`` or ``luthier-X.Y``."""
    return stack.partition("-")[0] == LUTHIER


def release_of(stack: str, folders: Sequence[Path] = ()) -> FetchedRelease | None:
    """The fetched ROCm that a program on this stack is given; None for one that is installed, or for none. ``folders``:
    those that the program itself names. Invalid for a release that was not fetched."""
    number = stack.partition("-")[2]
    if not number and stack != ROCM:
        return None
    from luthier_py.host.releases.fetched import find_fetched_release, list_fetched_releases

    if number:
        name = f"{ROCM}-{number}"
        found = find_fetched_release(name)
        if found is None:
            raise Invalid(f"--stack {stack}: {name} is not here; `luthier fetch {name}` brings it")
        return found
    newest = next(list_fetched_releases(), None)
    return None if newest is None or is_installed(HSA_LIBRARY, folders) else newest


def stack_environment(stack: str) -> dict[str, str]:
    """What makes a program find the emulator of LUTHIER_DEVICE below this stack."""
    if has_our_runtime(stack):
        folder = str(runtime_folder())
        return {"LD_LIBRARY_PATH": first(folder, os.environ.get("LD_LIBRARY_PATH"), os.pathsep), "ROCM_PATH": folder}
    here = platform.system(), platform.machine()
    if here != _PLATFORM:
        raise Unsupported(
            f"the device below ROCm is for Linux on x86-64, as ROCm is, and this is {' on '.join(here)}; "
            f"use --stack {LUTHIER}"
        )
    from luthier_py.host.kfd import device_library

    chosen = {name: os.environ.get(name, value) for name, value in ((_POOLS, "0"), (_VIRTUAL, "0"), (_IPC, "1"))}
    return {"LD_PRELOAD": _prepend_to_preload(device_library()), **chosen}


def topology_environment(stack: str, targets: Sequence[Target], memory_bytes: int) -> dict[str, str]:
    """What shows programs that have a release's libraries on our HIP runtime the device in /sys, where frameworks and
    management libraries look for one; nothing for a device whose card is unknown."""
    if not has_our_runtime(stack) or stack == LUTHIER or (platform.system(), platform.machine()) != _PLATFORM:
        return {}
    from luthier_py.host.kfd import device_library
    from luthier_py.host.kfd.topology import sysfs

    try:
        files = sysfs(targets, memory_bytes)
    except Unsupported:
        return {}
    return {"LD_PRELOAD": _prepend_to_preload(device_library()), SYSFS: str(files)}


def _prepend_to_preload(library: Path) -> str:
    return first(str(library), os.environ.get("LD_PRELOAD"), " ")


def first(one: str, others: str | None, separator: str) -> str:
    """``one`` before the entries of a list in the environment, which may be empty or not set."""
    return f"{one}{separator}{others}" if others else one


def library_folders() -> list[Path]:
    """Where programs find ROCm's libraries beside the system's own folders: as the environment says, and ROCm's."""
    rocm = os.environ.get("ROCM_PATH", "/opt/rocm")
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep), f"{rocm}/lib"]
    return [Path(folder) for folder in filter(None, folders)]


def libraries(name: str) -> Iterator[Path]:
    """Files called ``name`` or ``name``.VERSION there."""
    for folder in library_folders():
        yield from sorted(folder.glob(f"{name}*"))


def is_installed(name: str, folders: Iterable[Path] = ()) -> bool:
    """Whether a program may find this library; ``folders``: those that it names itself."""
    own = any(any(folder.glob(f"{name}*")) for folder in folders)
    return own or any(libraries(name)) or bool(find_library(name.removeprefix("lib").removesuffix(".so")))


def what_is_missing(stack: str, device: str | None, folders: Sequence[Path] = ()) -> str | None:
    """What to do about a program that failed where there is nothing to run it with."""
    if "-" in stack:
        return None  # a release has all of it
    from luthier_py.host.releases.fetched import list_fetched_releases

    if device is None and not is_installed(HIP_LIBRARY, folders):
        return f"there is no {HIP_LIBRARY} here: `--device emulator:TARGET` runs it on the emulator, ROCm on a GPU"
    if device is not None and stack == ROCM and not (
        is_installed(HSA_LIBRARY, folders) or any(list_fetched_releases())
    ):
        return (
            f"there is no {HSA_LIBRARY} here: --stack {ROCM} needs ROCm's libraries (`luthier fetch "
            f"{next(iter(RELEASES))}` brings them into a folder; Debian and Ubuntu: apt install libamdhip64-5; AMD's "
            f"packages: hip-runtime-amd), `--stack {LUTHIER}` does not"
        )
    return None
