"""Code objects that people install: load all, patch and check some.

Set LUTHIER_ROCM_LIBRARIES to host libraries or fat binaries, separated by colons; for Debian's:

    apt-get download librocrand1 librocsparse0; for deb in *.deb; do dpkg-deb -x $deb root; done
    export LUTHIER_ROCM_LIBRARIES=$(ls root/usr/lib/*/lib*.so.?.? | paste -sd:)
    pytest -m slow tests/differential/test_elf_real.py -s
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from elf_tools import Comgr, readelf

from luthier_py.base.errors import Unsupported
from luthier_py.binary.link import Chunk, NewKernel, NewVariable, Patch, link
from luthier_py.binary.loader import CodeObject, load, unbundle

LIBRARIES = [path for path in os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":") if path]
STRIDE = 25  # one object in so many is patched

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(not LIBRARIES, reason="LUTHIER_ROCM_LIBRARIES names no library"),
]


def check_object(obj: CodeObject) -> None:
    for kernel in obj.kernels:
        metadata, descriptor = kernel.metadata, kernel.descriptor
        assert kernel.entry % 256 == 0
        assert metadata[".group_segment_fixed_size"] == descriptor.group_segment_fixed_size
        assert metadata[".private_segment_fixed_size"] == descriptor.private_segment_fixed_size
        assert metadata[".kernarg_segment_size"] == descriptor.kernarg_size
        assert metadata[".wavefront_size"] == descriptor.wave_size
        assert all(arg.offset + arg.size <= descriptor.kernarg_size for arg in kernel.args)
        assert metadata[".sgpr_count"] <= descriptor.sgpr_count(obj.target)
        assert metadata[".vgpr_count"] <= descriptor.vgpr_count(obj.target)


def check_patched(old: CodeObject, path: Path, readelf_tool: str, comgr: Comgr) -> None:
    like = old.kernels[:3]
    chunks = tuple(Chunk(f"{kernel.name}.luthier", old.read(kernel.entry, 4)) for kernel in like)
    kernels = tuple(
        NewKernel(chunk.name, chunk.name, kernel.descriptor, kernel.name)
        for chunk, kernel in zip(chunks, like, strict=True)
    )
    new = load(link(old, Patch(chunks, kernels, (NewVariable("luthier.hits", 8, 8),))))
    assert new.data[64 : old.sections[1].offset] == old.data[64 : old.sections[1].offset]
    assert new.kernels[: len(old.kernels)] == old.kernels
    assert new.symbols[: len(old.symbols)] == old.symbols
    path.write_bytes(new.data)
    text = readelf(readelf_tool, path, "-a", "-W", "--hash-symbols", "--gnu-hash-table")
    for kernel in kernels:
        assert kernel.symbol in text
    names = [entry[".name"] for entry in comgr.metadata(new.data)["amdhsa.kernels"]]
    assert names == [kernel.name for kernel in new.kernels]


@pytest.mark.parametrize("library", LIBRARIES, ids=[Path(library).name for library in LIBRARIES])
def test_library(library: str, require_tool: Callable[[str], str], tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    readelf_tool, comgr = require_tool("llvm-readelf-22"), Comgr(require_tool("comgr"))
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for index, member in enumerate(unbundle(data, library)):
            try:
                obj = load(member.data, f"{library}:{index}")
            except Unsupported as error:
                assert "EF_AMDGPU_MACH" in str(error)
                counts["targets not supported"] += 1
                continue
            check_object(obj)
            counts[f"objects v{obj.version}"] += 1
            counts["kernels"] += len(obj.kernels)
            if obj.kernels and index % STRIDE == 0:
                check_patched(obj, tmp_path / "patched.co", readelf_tool, comgr)
                counts["patched"] += 1
    assert counts["kernels"] and counts["patched"]
    print(Path(library).name, dict(counts))
