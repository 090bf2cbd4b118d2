"""Libraries that stand where others are missing: every function that somebody asks them for returns an error, 1.

For tests only: with them a program starts that is linked with libraries which it does not use. In: shared objects, and
which of the libraries that they name are missing. Out: a folder for LD_LIBRARY_PATH.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile


def empty_libraries(objects: Iterable[Path], absent: Callable[[str], bool], folder: Path) -> dict[str, int]:
    """How many functions each has. One without a version belongs where its prefix says: hipfft...: libhipfft."""
    wanted: dict[str, dict[str, str]] = defaultdict(dict)
    loose: set[str] = set()
    for path in objects:
        with path.open("rb") as stream:
            file = ELFFile(stream)
            dynamic = file.get_section_by_name(".dynamic")
            for tag in dynamic.iter_tags("DT_NEEDED") if dynamic else ():
                if absent(tag.needed):
                    wanted[tag.needed]
            for name, library, version in _undefined(file):
                if library in wanted:
                    wanted[library][name] = version
                elif not library:
                    loose.add(name)
    for library, functions in wanted.items():
        prefix = re.sub(r"^lib|(64)?\.so.*", "", library).replace("rccl", "nccl")
        functions.update({name: "" for name in loose if name.startswith(prefix)})
        _build(folder, library, functions)
    return {library: len(functions) for library, functions in wanted.items()}


def _undefined(file: ELFFile) -> Iterable[tuple[str, str, str]]:
    """Name, library and version of each; the last two are empty where the object says nothing of them."""
    versions, needs = file.get_section_by_name(".gnu.version"), file.get_section_by_name(".gnu.version_r")
    entries = needs.iter_versions() if needs else ()
    known = {part["vna_other"]: (need.name, part.name) for need, parts in entries for part in parts}
    symbols: Any = file.get_section_by_name(".dynsym")
    for number, symbol in enumerate(symbols.iter_symbols() if symbols else ()):
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL":
            yield symbol.name, *known.get(versions.get_symbol(number)["ndx"] if versions else 0, ("", ""))


def _build(folder: Path, library: str, functions: dict[str, str]) -> None:
    source, script = folder / f"{library}.c", folder / f"{library}.map"
    source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in functions))
    versions = defaultdict(list)
    for name, version in functions.items():
        if version:
            versions[version].append(f"{name};")
    script.write_text("".join(f"{version} {{ global: {' '.join(names)} }};\n" for version, names in versions.items()))
    flags = ["-shared", "-fPIC", "-w", f"-Wl,-soname,{library}"]
    if versions:
        flags.append(f"-Wl,--version-script={script}")
    subprocess.run(["cc", *flags, str(source), "-o", str(folder / library)], check=True)
