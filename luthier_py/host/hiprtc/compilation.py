"""A program for hiprtc to a code object, or to bitcode.

In: its text, headers, options and name expressions. Out: what clang made of it, and its words. Invariant: the
compiler is a child process without a shell that writes into a folder of its own, which is removed when it has ended;
earlier results come from the cache where preprocessing gives the same again: it sees what a header, the environment or
a new file in a folder that is searched changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.base.records import dataclass
from luthier_py.base.storage import Shelf, cache_key
from luthier_py.host.hiprtc import BUILTIN_HEADER
from luthier_py.host.hiprtc.lowered import find_lowered_names, with_names
from luthier_py.host.worker.wire import parts_of, prefix_with_length
from luthier_py.rewrite.clang import Search, Toolchain, create_working_folder, inputs_key, run_clang
from luthier_py.rewrite.clang.library import library_folder

SHELF = Shelf("hiprtc", 256 << 20)
MORE_OPTIONS = "HIPRTC_COMPILE_OPTIONS_APPEND"
"""ROCm's variable for more of them, with spaces between (clr, rocclr/utils/flags.hpp)."""
NO_BUILTIN_HEADER, RELOCATABLE = "--hiprtc-no-builtin-header", "-fgpu-rdc"
_DROPPED = "-hip-pch", "--save-temps", NO_BUILTIN_HEADER  # what ROCm's library keeps to itself
_NO_TARGET = "hiprtc: no architecture: give --offload-arch=, or the program a device (LUTHIER_DEVICE)"
_TARGETS = "--offload-arch=", "--gpu-architecture="
_SPACED = re.compile(r"(-I|-D|-U|-include|-isystem)\s+(\S.*)", re.DOTALL)
_OVERRIDE = "CCC_OVERRIDE_OPTIONS"  # clang's own variable for other options
_SOURCE, _NAME_BYTES = "CompileSource", 160  # the compiler's own files are named after it, with some more


@dataclass(frozen=True, slots=True)
class SourceText:
    """``folder``: by which relative paths go. ``target``: the current device's, where options name none."""

    folder: str
    target: str
    name: str
    source: str
    headers: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compiled:
    """``bitcode`` with -fgpu-rdc, otherwise ``code``. ``names``: of the name expressions."""

    log: str
    code: bytes = b""
    bitcode: bytes = b""
    names: tuple[str, ...] = ()


def compile_program(program: SourceText, search: Search | None = None) -> Compiled:
    """LuthierError has the log of a program that cannot be compiled."""
    search = search or Search()
    own = (word for option in program.options for word in _words(option))
    options = [*own, *search.environment.get(MORE_OPTIONS, "").split()]
    target = _target(options) or program.target
    if not target:
        raise Invalid(_NO_TARGET)
    toolchain = search.toolchain(target.partition(":")[0])
    key = cache_key(repr(program), repr(options), target, toolchain.identity, os.environ.get(_OVERRIDE, ""))
    with create_working_folder("hiprtc") as folder:
        return _Compilation(program, options, target, toolchain, folder, key).compile_cached()


def _data(text: str) -> bytes:
    """As the program had it."""
    return text.encode(errors="surrogateescape")


def _cut(name: str) -> str:
    """To what a file's name can have; half a character is left out."""
    data = _data(name)
    return name if len(data) <= _NAME_BYTES else data[:_NAME_BYTES].decode(errors="ignore") or _SOURCE


def _words(option: str) -> list[str]:
    """-I FOLDER may come as one option with a space in it, as with ROCm's library."""
    spaced = _SPACED.fullmatch(option)
    return [spaced[1], spaced[2]] if spaced else [option]


def _target(options: Sequence[str]) -> str:
    """The last that is named, as clang has it."""
    found = [option.partition("=")[2] for option in options if option.startswith(_TARGETS)]
    return found[-1] if found else ""


@dataclass(frozen=True, slots=True)
class _Compilation:
    program: SourceText
    options: Sequence[str]
    target: str
    toolchain: Toolchain
    folder: Path
    key: str

    def compile_cached(self) -> Compiled:
        source = self._source()
        command = [*self._command(), str(source)]
        seen = inputs_key(self._run, command, self.folder, self.program.folder)
        key = seen and cache_key(self.key, seen)
        kept = _read_cached(key) if key else None
        if kept is None:
            kept = self._run_compiler(command)
            if key:
                _keep(key, kept)
        return kept

    def _run_compiler(self, command: list[str]) -> Compiled:
        output = self.folder / "output"
        log = self._run([*command, "-o", str(output)])
        if not output.is_file():
            raise LuthierError(f"{log}hiprtc: these options make no code object: {' '.join(self.program.options)}")
        image, expressions = output.read_bytes(), self.program.expressions
        relocatable = RELOCATABLE in self.options
        names = (
            find_lowered_names(self._object(output) if relocatable else image, len(expressions)) if expressions else []
        )
        return Compiled(log, b"" if relocatable else image, image if relocatable else b"", tuple(names))

    def _source(self) -> Path:
        """Only the last part of the name is taken: it may have folders in it that are not there."""
        name = _cut(Path(self.program.name).name)
        source = self._own("source") / (name if name not in ("", "..") else _SOURCE)
        source.write_bytes(_data(with_names(self.program.source, self.program.expressions)))
        headers = self._own("headers")
        for name, text in self.program.headers:
            path = Path(os.path.normpath(headers / name))
            if not path.is_relative_to(headers) or path == headers:
                raise Invalid(f"hiprtc: the header's name `{name}` leads out of the program")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(_data(text))
            except OSError as error:
                raise LuthierError(f"hiprtc: the header `{name}` cannot be written: {error.strerror}") from None
        return source

    def _own(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        return path

    def _command(self) -> list[str]:
        major, minor = self.toolchain.version
        library = library_folder(self.toolchain, self.target.partition(":")[0], self.folder / "bitcode")
        builtin = ["-nogpuinc", "-D__HIPCC_RTC__", "-include", "__clang_hip_runtime_wrapper.h",
                   "-include", str(BUILTIN_HEADER)]  # fmt: skip
        own = [option for option in self.options if option not in _DROPPED and not option.startswith(_TARGETS)]
        return [
            "-x", "hip", "--cuda-device-only", f"--offload-arch={self.target}", "-O3",
            f"--rocm-device-lib-path={library}", "-D__HIP_PLATFORM_AMD__",
            f"-DHIP_VERSION_MAJOR={major}", f"-DHIP_VERSION_MINOR={minor}", "-isystem", str(self.toolchain.headers),
            *(builtin if NO_BUILTIN_HEADER not in self.options else ["-nogpuinc"]),
            "-Wno-gnu-line-marker", "-Wno-missing-prototypes", "-fno-crash-diagnostics",
            *own, "-I", str(self.folder / "headers"), f"-cuid={self.key[:16]}",
            f"-ffile-prefix-map={self.folder / 'source'}/=", f"-ffile-prefix-map={self.folder}/=",
            *(["-emit-llvm", "-c"] if RELOCATABLE in self.options else ["--no-gpu-bundle-output"]),
        ]  # fmt: skip

    def _object(self, bitcode: Path) -> bytes:
        """An ELF file whose symbols can be read."""
        output = self.folder / "object"
        processor = self.target.partition(":")[0]
        self._run(["--target=amdgcn-amd-amdhsa", f"-mcpu={processor}", "-nogpulib", "-O0", "-w", "-x", "ir", "-c",
                   str(bitcode), "-o", str(output)])  # fmt: skip
        return output.read_bytes()

    def _run(self, arguments: list[str]) -> str:
        """What the compiler says, with our own folders out of it."""
        return run_clang(self.toolchain.compiler, arguments, self.program.folder, self.folder)


def _read_cached(key: str) -> Compiled | None:
    data = SHELF.read(key)
    if data is None:
        return None
    log, code, bitcode, *names = parts_of(data)
    return Compiled(log.decode(), code, bitcode, tuple(name.decode() for name in names))


def _keep(key: str, made: Compiled) -> None:
    names = (name.encode() for name in made.names)
    SHELF.write(key, b"".join(map(prefix_with_length, [made.log.encode(), made.code, made.bitcode, *names])))
