"""Kernels of a fetched release's libraries: of the objects that Tensile wrote for rocBLAS and hipBLASLt, and of those
that libraries carry themselves.

In: a release's name, a folder to put files into, how many kernels of Tensile's, a seed. Out: Subjects, the same ones
for the same seed and release. Invariant: a kernel that needs nothing else of its object is in a file of its own, as it
was written: these objects have up to 2,300 kernels and 200,000 symbols, and to read all of that takes longer than to
instrument one kernel. What needs more (functions, data) stays in its object.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from math import ceil
from pathlib import Path

from subjects import Subject

from luthier_py.base.errors import Invalid
from luthier_py.binary.link import Chunk, NewKernel, Patch, link
from luthier_py.binary.link.standalone import make_standalone
from luthier_py.binary.loader import CodeObject, SectionType, load, open_code, read_code, unbundle
from luthier_py.binary.loader.elf import SYMBOL
from luthier_py.binary.loader.symbols import read_symbols
from luthier_py.host.releases.fetched import find_fetched_release
from luthier_py.program.ir import Extents, Program, find_extents, lift

TARGETS = ("gfx90a", "gfx942")
TENSILE = ("rocblas", "hipblaslt")  # folders of such objects
LIBRARIES = ("librocblas", "librocrand", "librocsolver", "librocsparse")  # rocFFT's compile theirs as they run
OBJECTS = (".co", ".hsaco")


def of_release(folder: Path, name: str, kernels: int, seed: int) -> list[Subject]:
    """``kernels`` of Tensile's, as many of each file as of others, and one of each object in a library."""
    kept = folder / f"{name}-{kernels}-{seed}.json"  # choosing them takes minutes
    if not kept.exists():
        release = find_fetched_release(name)
        if release is None:
            raise Invalid(f"{name} is not there: `luthier fetch {name}` brings it")
        chosen = [*_of_tensile(folder, release.libraries, kernels, seed),
                  *_of_libraries(folder, release.libraries, seed)]
        kept.write_text(json.dumps([(s.corpus, s.target, s.name, str(s.path), s.kernel) for s in chosen]))
    return [Subject(corpus, target, of, Path(path), kernel)
            for corpus, target, of, path, kernel in json.loads(kept.read_text())]


def _of_tensile(folder: Path, libraries: Path, most: int, seed: int) -> Iterator[Subject]:
    files = [(library, path) for library in TENSILE for path in sorted((libraries / library).rglob("*"))
             if path.suffix in OBJECTS and any(target in path.name for target in TARGETS)]
    rng, left = random.Random(seed), most
    rng.shuffle(files)
    for number, (library, path) in enumerate(files):
        obj = load(read_code(path), path.name)
        names = [kernel.name for kernel in obj.kernels]
        chosen = rng.sample(names, min(len(names), ceil(left / (len(files) - number))))
        left -= len(chosen)
        yield from _subjects(folder, library, obj, chosen)


def _of_libraries(folder: Path, libraries: Path, seed: int) -> Iterator[Subject]:
    for library in LIBRARIES:
        for path in sorted(libraries.glob(f"{library}.so.*.*")):
            rng = random.Random(f"{seed} {library}")
            with open_code(path) as data:
                for member in unbundle(data, path.name):
                    if member.target_name.partition(":")[0] in TARGETS:
                        obj = load(member.data, path.name)
                        names = [kernel.name for kernel in obj.kernels]
                        yield from _subjects(folder, library, obj, rng.sample(names, min(len(names), 1)))


def _subjects(folder: Path, corpus: str, obj: CodeObject, names: list[str]) -> Iterator[Subject]:
    if not names:
        return
    program, extents = lift(obj, names), find_extents(obj)
    for name in names:
        code = code_of(extents, obj.kernel(name).entry)
        data = cut(obj, name, code) if _within(program, name, code) else obj.data
        path = folder / f"{sha256(data).hexdigest()[:20]}.co"
        if not path.exists():
            path.write_bytes(data)
        yield Subject(corpus, obj.target.name, f"{obj.name}: {name}", path, name)


def code_of(extents: Extents, entry: int) -> range:
    """From a kernel's entry to what the next symbol names: functions without a symbol lie behind their kernel."""
    after = extents.starts[bisect_right(extents.starts, entry) :]
    return range(entry, after[0] if after else extents.text_at(entry).stop)


def _within(program: Program, name: str, code: range) -> bool:
    """Whether a kernel and all that it calls make no address of something else, as far as they can be read."""
    functions = program.reachable(program.kernel(name).function)
    return all(function.address in code and all(builder.value in code for builder in function.pc_builders)
               for function in functions)


def cut(obj: CodeObject, name: str, code: range) -> bytes:
    """A code object with that kernel alone; its symbol says how long it is as the original's does."""
    kernel, symbol = obj.kernel(name), obj.symbol(name)
    empty = replace(load(make_standalone(obj), obj.name), _kernels={name: kernel})
    chunk = Chunk(name, obj.read(code.start, len(code)))
    made = link(empty, Patch((chunk,), (NewKernel(name, name, kernel.descriptor, name),)))
    return _with_size(load(made), name, 0 if symbol is None else symbol.size)


def _with_size(obj: CodeObject, name: str, size: int) -> bytes:
    """``obj`` with that size in the rows of a symbol, of all symbol tables."""
    data = bytearray(obj.data)
    for index, table in enumerate(obj.elf.sections):
        if table.type in (SectionType.SYMTAB, SectionType.DYNSYM):
            for row, symbol in enumerate(read_symbols(obj.elf, index)):
                if symbol.name == name:
                    end = table.offset + (row + 1) * SYMBOL.size
                    data[end - 8 : end] = size.to_bytes(8, "little")  # st_size is the last field
    return bytes(data)
