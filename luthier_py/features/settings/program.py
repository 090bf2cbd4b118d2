"""The file of a program: where it is, and what in it keeps a device or a tool from being put below it.

In: a command's first word. Out: its path; reasons, a line each. Invariant: nothing is run or changed, and what cannot
be read is no reason. The rules are those of ld.so(8): LD_PRELOAD and LD_LIBRARY_PATH are for programs that it loads,
and it heeds neither where the kernel asks for secure execution (getauxval(3), AT_SECURE).
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.base.records import dataclass

_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_386": "i386"}
_LONGEST_LINE, _MOST_INTERPRETERS = 256, 4  # of a script's first line (execve(2)), and how deep they may nest
_CAPABILITIES = "security.capability"


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """``rpath``: folders that are looked into before LD_LIBRARY_PATH, ``runpath`` those after it."""

    machine: str
    dynamic: bool
    needed: tuple[str, ...] = ()
    rpath: tuple[Path, ...] = ()
    runpath: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Executable:
    """``path``: what the kernel loads, of a script its interpreter. ``elf``: what is known of it, if it is ELF."""

    path: Path
    elf: ElfFacts | None = None


def program_path(name: str, search: str | None = None) -> Path:
    """Where a shell would find it, with ``search`` as its PATH; Invalid says why there is nothing to start."""
    found = shutil.which(name, path=search)
    if found is not None:
        return Path(found)
    path = Path(name)
    if os.sep not in name or not os.path.lexists(path):
        raise Invalid(f"there is no program {name}")
    if path.is_dir():
        raise Invalid(f"{name} is a folder; give a program")
    if path.exists():
        raise Invalid(f"{name} may not be executed: `chmod +x {name}`, or give the program that reads it before it")
    raise Invalid(f"{name} is a link to nothing")


def read_program(path: Path) -> Executable:
    """What is at a path; a script's interpreter, since that is what runs."""
    for _ in range(_MOST_INTERPRETERS):
        try:
            with path.open("rb") as file:
                line = file.read(_LONGEST_LINE).partition(b"\n")[0]
        except OSError:
            return Executable(path)
        words = line[2:].split(maxsplit=1) if line.startswith(b"#!") else []
        if not words:
            break
        path = Path(os.fsdecode(words[0]))
    return Executable(path, _read_elf_facts(path))


def why_not_started(path: Path) -> str | None:
    """Why the kernel does not start a file that may be executed."""
    program = read_program(path)
    if not program.path.exists():
        return f"{path}: its first line names {program.path}, which is not there"
    if program.elf is not None and program.elf.machine != _here():
        return f"{path} is a program for {program.elf.machine}, and this is {_here()}"
    if program.elf is None:
        return f"{path} is no program for this computer, nor a script whose first line names one (#!/bin/sh)"
    return None


def obstacles(path: Path, on_our_runtime: bool) -> Iterator[str]:
    """Why a program may have met neither a tool nor a device. ``on_our_runtime``: the emulator's HIP runtime is what
    it should have found."""
    program = read_program(path)
    elf, name = program.elf, program.path
    if elf is None:
        return
    if elf.machine != _here():
        yield f"{name} is a program for {elf.machine}: tools and devices are for {_here()}"
    elif not elf.dynamic:
        yield f"{name} is linked statically, so nothing can be loaded with it: link it dynamically"
    elif is_privileged(program.path):
        yield (
            f"{name} runs with other rights than its caller (set-user-ID, set-group-ID or capabilities), so the loader "
            f"ignores LD_PRELOAD and LD_LIBRARY_PATH: run a copy without them"
        )
    elif on_our_runtime:
        yield from _past_our_runtime(str(name), elf)


def code_for_others(path: Path, device: str) -> Iterator[str]:
    """That a program carries code, and none for a device of these (emulator:TARGET): HIP 7 ends with SIGSEGV then."""
    from luthier_py.binary.loader.bundle import Member, choose, members, not_for  # few programs fail
    from luthier_py.binary.loader.file import open_code
    from luthier_py.host.worker.device.properties import architecture
    from luthier_py.host.worker.device.targets import parse_targets

    try:
        with open_code(path) as data:
            parts = [part for part in members(data, str(path)) if isinstance(part, Member)]
            there = ", ".join(dict.fromkeys(part.target_name for part in parts))
            devices = dict.fromkeys(map(architecture, parse_targets(device)))
            unfit = [each for each in devices if there and choose(parts, each) is None]
    except (OSError, LuthierError):
        return
    for each in unfit:
        yield f"{not_for(each, str(path), there)}: compile it with --offload-arch={each.target.name}"


def is_privileged(path: Path) -> bool:
    """Whether the kernel asks for secure execution (execve(2), capabilities(7))."""
    try:
        facts = path.stat()
        capable = os.geteuid() != 0 and _CAPABILITIES in os.listxattr(path)
    except OSError:
        return False
    user = facts.st_mode & stat.S_ISUID and facts.st_uid != os.getuid()
    group = facts.st_mode & stat.S_ISGID and facts.st_mode & stat.S_IXGRP and facts.st_gid != os.getgid()
    return bool(user or group or capable)


def search_folders(path: Path) -> list[Path]:
    """Folders that the program itself names for its libraries."""
    elf = read_program(path).elf
    return [*elf.rpath, *elf.runpath] if elf is not None else []


def _past_our_runtime(name: str, elf: ElfFacts) -> Iterator[str]:
    hip = [folder for folder in elf.rpath if any(folder.glob("libamdhip64.so*"))]
    if hip:
        yield (
            f"{name} has an RPATH, {hip[0]}, and finds the HIP runtime there and not the emulator's: "
            f"`patchelf --remove-rpath`, or --stack rocm"
        )
    below = [library for library in elf.needed if library.startswith(("libomptarget.so", "libhsa-runtime64.so"))]
    if below and not any(library.startswith("libamdhip64.so") for library in elf.needed):
        yield f"{name} uses {below[0]}, and the emulator's HIP runtime has HIP alone: --stack rocm, with ROCm installed"


def _read_elf_facts(path: Path) -> ElfFacts | None:
    from elftools.common.exceptions import ELFError  # few programs are looked at, and all would wait for the import
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile

    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            machine = _MACHINES.get(elf["e_machine"], str(elf["e_machine"]).removeprefix("EM_").lower())
            machine = f"{machine} (32 bits)" if elf.elfclass == 32 else machine
            segments = list(elf.iter_segments())
            dynamic = next((one for one in segments if isinstance(one, DynamicSegment)), None)
            if dynamic is None or not any(one["p_type"] == "PT_INTERP" for one in segments):
                return ElfFacts(machine, dynamic=False)
            tags = list(dynamic.iter_tags())
            rpath, runpath = (_folders(_texts(tags, name), path) for name in ("RPATH", "RUNPATH"))
            return ElfFacts(machine, True, tuple(_texts(tags, "NEEDED")), () if runpath else rpath, runpath)
    except (OSError, ELFError, UnicodeDecodeError, ValueError, KeyError, AttributeError, TypeError):
        return None


def _texts(tags: list[Any], name: str) -> list[str]:
    return [str(getattr(tag, name.lower())) for tag in tags if tag.entry.d_tag == f"DT_{name}"]


def _folders(lists: list[str], program: Path) -> tuple[Path, ...]:
    origin = str(program.resolve().parent)
    expanded = (one.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for one in ":".join(lists).split(":"))
    return tuple(Path(folder) for folder in expanded if folder)


def _here() -> str:
    return platform.machine()
