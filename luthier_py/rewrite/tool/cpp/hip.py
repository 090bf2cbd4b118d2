"""Hooks in HIP C++, or in bitcode that is there: Hooks, whose attributes are the hooks, functions and variables in it.

In: a source file, text or a file of bitcode. Out: Hook, Device and Variable by name. Invariant: a source is compiled
when something of it is first used, for each processor once; what was made of the same inputs comes from the cache.
"""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from luthier_py.base.errors import HookError, Invalid, LuthierError, Uncompiled, Unsupported
from luthier_py.base.llvm import bitcode_text, version
from luthier_py.base.records import dataclass, field, replace
from luthier_py.base.storage import Shelf, cache_key
from luthier_py.isa import target, targets
from luthier_py.rewrite.clang import Search, create_working_folder, inputs_key, run_clang
from luthier_py.rewrite.clang.search import CLANG, processors
from luthier_py.rewrite.llvm_text.modules import read_variable
from luthier_py.rewrite.llvm_text.names import symbol_of
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.cpp.declared import Declared, Unit
from luthier_py.rewrite.tool.cpp.device_ir import DEPTH_MARK, DeviceIr
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.cpp.native_tables import TABLES
from luthier_py.rewrite.tool.hooks.hook import Device, FloatMode, Hook, Parameter, Signature, make_hook
from luthier_py.rewrite.tool.hooks.printing import PRINTED, PRINTING
from luthier_py.rewrite.tool.variables import Variable

SHELF = Shelf("hip", 64 << 20)
INCLUDE = Path(__file__).parents[1] / "include"
_INSTANCE = "__luthier_instance_"
_FOLDING = {"fold": True, "no_fold": False}
_IN_MODE = "application_mode"
_DIALECT = ("-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-emit-llvm", "-c", "-O2", "-g",
            "-Xclang", "-disable-llvm-passes", "-fno-crash-diagnostics", "-cuid=0")  # fmt: skip


@dataclass(frozen=True)
class HipSource:
    """``text`` where it is no file; ``name`` is the file's path, or the place of the text."""

    name: str
    text: str | None
    options: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    """Names of functions that are requested in C++'s words: templates with their arguments, names with their scope."""
    search: Search = field(default_factory=Search, compare=False, repr=False)

    def bitcode(self, processor: str, wave_size: int) -> bytes:
        """Raises Uncompiled with the compiler's words, Unsupported where there is no compiler."""
        try:
            compiler = self.search.compiler(processor, version())
            if not processors(str(compiler)):
                raise Unsupported(f"{compiler} has no target amdgcn: install a clang that has, or set {CLANG} to it")
            with create_working_folder("hip") as folder:
                command = [*self._command(processor, wave_size), str(self._source(folder))]
                return self._compile_cached(compiler, command, folder)
        except Unsupported:
            raise
        except LuthierError as error:
            raise Uncompiled(f"{self.name}: clang does not compile it for {processor}:\n{error.message}") from error

    def declares_depths(self) -> bool:
        """Whether it does itself: what it includes is not read."""
        try:
            return "LUTHIER_DEPTH" in (Path(self.name).read_text() if self.text is None else self.text)
        except (OSError, UnicodeDecodeError):  # the compiler will say it
            return False

    def processor(self) -> tuple[str, int]:
        """One to read the types for, which are the same for all: the newest that the compiler supports of those that
        have the most operations."""
        rows = [row for row in reversed(targets()) if row.wave_sizes == (64,)]
        compiler = self.search.compiler(rows[0].name, version())
        known = processors(str(compiler))
        return next((row.name for row in rows if row.name in known), rows[0].name), 64

    def _compile_cached(self, compiler: Path, command: list[str], folder: Path) -> bytes:
        seen, own = (self._compute_inputs_key(compiler, command, folder),
                     [word.replace(str(folder), "") for word in command])
        key = seen and cache_key(seen, str(compiler.resolve()), str(compiler.stat().st_mtime_ns), repr(own))
        kept = SHELF.read(key) if key else None
        if kept is None:
            output = folder / "output.bc"
            run_clang(compiler, [*command, "-o", str(output)], str(folder), folder)
            kept = output.read_bytes()
            if key:
                SHELF.write(key, kept)
        return kept

    def _compute_inputs_key(self, compiler: Path, command: list[str], folder: Path) -> str:
        where = str(folder)
        return inputs_key(lambda words: run_clang(compiler, words, where, folder), command, folder, where)

    def _command(self, processor: str, wave_size: int) -> list[str]:
        waves = ["-mwavefrontsize64" if wave_size == 64 else "-mno-wavefrontsize64"]
        return [
            *_DIALECT, f"--offload-arch={processor}", *(waves if len(target(processor).wave_sizes) > 1 else []),
            f"-DLUTHIER_WAVE_SIZE={wave_size}", "-I", str(INCLUDE), *self.options,
        ]  # fmt: skip

    def _source(self, folder: Path) -> Path:
        (folder / "source").mkdir()
        source = folder / "source" / "hooks.hip"
        quoted = self.name.replace("\\", "\\\\").replace('"', '\\"')
        lines = [f'#include "{quoted}"\n'] if self.text is None else [f'#line 1 "{quoted}"\n', self.text, "\n"]
        asked = [f"__attribute__((device, used)) auto *{_INSTANCE}{i} = &{name};\n"
                 for i, name in enumerate(self.instances)]  # fmt: skip
        source.write_text("".join([*lines, *(['#line 1 "names that are asked for"\n'] if asked else []), *asked]))
        return source


@dataclass(frozen=True)
class BitcodeFile:
    """Bitcode that was compiled elsewhere, used as a HipSource is. ``name``: its path; ``instances``: always empty."""

    name: str
    data: bytes = field(repr=False)
    instances: tuple[str, ...] = ()

    def bitcode(self, processor: str, wave_size: int) -> bytes:
        """The file's content, for every processor and wave size."""
        return self.data

    def processor(self) -> tuple[str, int]:
        """An empty name, and waves of 64: the types in it are the same for all processors."""
        return "", 64

    def declares_depths(self) -> bool:
        """Whether it has the text of an annotation for a depth anywhere."""
        return DEPTH_MARK.encode() in self.data


class Hooks:
    """What a source in HIP C++ declares, by name: functions marked with LUTHIER_HOOK are hooks, those marked with
    LUTHIER_DEVICE are called by hooks in Python, and ``__device__`` variables are tool variables.

    ``hooks.name``, or ``hooks["name<u32>"]`` for an instance of a template, and for a name with its namespace.
    """

    def __init__(self, source: HipSource | BitcodeFile) -> None:
        self._source = source
        self._found: dict[str, Hook | Device | Variable] = {}
        self._units: dict[tuple[str, int, tuple[str, ...]], Unit] = {}
        self._variables: dict[str, Variable] = {}

    @classmethod
    def from_hip(cls, source: str | PathLike[str], *options: str) -> Hooks:
        """HIP C++: a file, whose path counts from the folder of the file that says so, or text of several lines.
        ``options`` are clang's: -D, -I, -std."""
        text = fspath(source)
        place = caller()
        if "\n" in text:
            return cls(HipSource(f"{place} (text)", text, options))
        return cls(HipSource(str(_require_file(place, text)), None, options))

    @classmethod
    def from_bitcode(cls, path: str | PathLike[str]) -> Hooks:
        """A file of LLVM bitcode, compiled with -g from a source that includes luthier/hooks.h; one for all processors
        that it is used for."""
        found = _require_file(caller(), fspath(path))
        return cls(BitcodeFile(str(found), found.read_bytes()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        """A Hook, a Device function or a Variable; raises HookError where there is none of that name."""
        if name not in self._found:
            self._found[name] = self._make_member(name)
        return self._found[name]

    def __dir__(self) -> list[str]:
        unit = self._unit(*self._source.processor())
        return sorted([*unit.names, *(each.name for each in unit.variables)])

    def __repr__(self) -> str:
        return f"<hooks of {self._source.name}>"

    def ir(self, processor: str, wave_size: int) -> DeviceIr:
        """The LLVM text of the whole unit."""
        return self._unit(processor, wave_size).ir

    @property
    def may_go_too_deep(self) -> bool:
        """Whether its text says of functions how deep they may call themselves; nothing is compiled to know it."""
        return self._source.declares_depths()

    def _unit(self, processor: str, wave_size: int) -> Unit:
        """Compiled; raises HookError, Unsupported."""
        key = processor, wave_size, self._source.instances
        if key not in self._units:
            data = self._source.bitcode(processor, wave_size)
            try:
                text = bitcode_text(data)
            except Invalid as error:
                raise Unsupported(f"{self._source.name}: {error.message}; hooks need bitcode of clang {version()} "
                                  f"or older: set {CLANG} to one") from error
            self._units[key] = Unit(DeviceIr.parse(text), self._source.name)
        return self._units[key]

    def _make_member(self, name: str) -> Hook | Device | Variable:
        symbol = self._instantiate_function(name) if not name.isidentifier() else ""
        unit = self._unit(*self._source.processor())
        variable = next((each for each in unit.variables if each.name == name), None)
        if variable is not None:
            return self._variable(unit, variable.symbol)
        symbols = [symbol] if symbol else unit.names.get(name, [])
        if len(symbols) != 1:
            there = ", ".join(dir(self)) or "nothing that is marked with LUTHIER_HOOK"
            what = f"has several functions {name}; give them different names" if symbols else \
                f"has no hook, device function or variable {name}; it has: {there}"
            raise HookError(f"{caller()}: {self._source.name} {what}")
        return self._function(unit, unit.function(symbols[0]))

    def _instantiate_function(self, name: str) -> str:
        """The symbol of a function that is named in C++'s words."""
        if isinstance(self._source, BitcodeFile):
            raise HookError(f"{caller()}: {self._source.name} is bitcode: {name} cannot be made of it")
        before = self._source
        self._source = replace(before, instances=(*before.instances, name))
        try:
            unit = self._unit(*self._source.processor())
        except LuthierError:
            self._source = before
            raise
        text = unit.ir.symbols[f"{_INSTANCE}{len(before.instances)}"]
        instance = read_variable(text)
        symbol = symbol_of(instance.data) if instance is not None else ""
        if symbol not in unit.marked:
            raise HookError(f"{caller()}: {name} is not marked with LUTHIER_HOOK or LUTHIER_DEVICE")
        return symbol

    def _function(self, unit: Unit, found: Declared) -> Hook | Device:
        reached = set(unit.ir.collect_reachable(found.symbol))
        symbols = tuple(each.symbol for each in unit.variables if each.symbol in reached)
        captured: tuple[Variable, ...] = tuple(self._variable(unit, symbol) for symbol in symbols)
        senders = tuple(each for each in unit.senders if each.symbol in reached)
        tables = tuple(each for each in unit.tables if each.symbol in reached)
        native = Native(self, found.symbol, found.name, found.place, found.takes, found.gives, found.offsets, symbols,
                        senders, tables)
        if found.mark == "device":
            return Device(native, found.signature)
        lanes = [word for word in found.words if word not in (*_FOLDING, _IN_MODE)] or ["active"]
        folding = [_FOLDING[word] for word in found.words if word in _FOLDING]
        if len(lanes) > 1 or len(folding) > 1:
            given = ", ".join(found.words)
            raise HookError(f"{found.place}: LUTHIER_HOOK({given}): give it lanes once, and folding once")
        own = found.signature.parameters
        folded = None if not folding else frozenset(range(len(own)) if folding[0] else ())
        passed = [Parameter(each.attribute, each.pointer, lane=False) for each in captured]
        if tables:
            captured = (*captured, unit.table)
            passed.append(Parameter(TABLES, unit.table.pointer, lane=False))
        if reached & unit.ir.depths.keys():
            captured = (*captured, PRINTED)
            passed.append(Parameter(PRINTING, PRINTED.pointer, lane=False))
        signature = Signature((*own, *passed), found.signature.results)
        mode = FloatMode.APPLICATION if _IN_MODE in found.words else FloatMode.OWN
        return make_hook(native, lanes[0], signature, folded, captured, mode.value)

    def _variable(self, unit: Unit, symbol: str) -> Variable:
        if symbol not in self._variables:
            (found,) = (each for each in unit.variables if each.symbol == symbol)
            made = Variable(found.type, found.length, name=f"{Path(self._source.name).stem}.{found.name}")
            made.attribute, made.initial = found.name, found.initial
            self._variables[symbol] = made
        return self._variables[symbol]


def _require_file(place: str, text: str) -> Path:
    path = Path(place.rpartition(":")[0]).parent / text
    if not path.is_file():
        raise HookError(f"{place}: there is no file {path}")
    return path.resolve()
