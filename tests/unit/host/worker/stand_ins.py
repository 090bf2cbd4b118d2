"""Libraries that a library wants and that none of its calls here needs: every function of them gives 1.

In: the library, and a folder. Out: shared libraries in that folder, by the names that the library asks for.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from elftools.elf.elffile import ELFFile

NAMES = ("hipblas", "rocblas", "rocrand")


def stand_in(library: Path, folder: Path) -> None:
    with library.open("rb") as file:
        elf = ELFFile(file)
        symbols = [s.name for s in elf.get_section_by_name(".dynsym").iter_symbols() if s["st_shndx"] == "SHN_UNDEF"]
        needed = [tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
    source = folder / "stand_ins.c"
    source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in symbols if name.startswith(NAMES)))
    for name in (name for name in needed if any(each in name for each in NAMES)):
        subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", source, "-o", folder / name], check=True)
