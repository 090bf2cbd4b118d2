"""The only importer of llvmlite.binding: LLVM IR text in, machine code out.

Importing this module is cheap; LLVM is loaded by the first call. LLVM's state is global to
the process, so every function here that touches it holds ``LOCK``.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import re
import resource
import signal
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import Enum, auto
from functools import cache
from tempfile import TemporaryFile
from typing import Any, NoReturn
from warnings import catch_warnings, simplefilter

from luthier_py.base.errors import Invalid, LuthierError

LOCK = threading.RLock()

# No optimizer that merges the lanes of an atomic into one: hooks say themselves who takes part. No two operations in
# one instruction: their destinations share encoding bits, so that they could not be given other registers one by one.
OPTIONS = ("--amdgpu-atomic-optimizer-strategy=None", "--amdgpu-enable-vopd=false")

_AMDGPU_TRIPLE = "amdgcn-amd-amdpal"  # its amdgpu_cs functions are shader parts: they end by falling off their end
MOST_WORDS = 400
"""Letters of what LLVM says when it cannot make code."""
_NOTHING = re.compile(r"\berror: |<unknown>:0:0: | in function 'h0'|\bin function h0 ")
_HEADER_LINES = "; ModuleID", "source_filename", "target "


@cache
def load_binding() -> Any:
    """llvmlite.binding, with all targets initialised and our options set."""
    with LOCK:
        import llvmlite.binding as llvm

        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        for option in OPTIONS:
            llvm.set_option("luthier", option)
        return llvm


def amdgpu_object(ir: str, cpu: str, wave_size: int) -> bytes:
    """Optimise a module of ``amdgpu_cs`` functions and emit its relocatable object.

    ``cpu`` is LLVM's processor name. The module's own triple and data layout are replaced.
    """
    with LOCK:
        machine = _amdgpu_machine(cpu, wave_size)
        code: bytes = machine.emit_object(_optimise_module(ir, machine))
        return code


def apart(work: Callable[[], bytes], seconds: int = 0) -> bytes:
    """The result of ``work``, run in a child process: LLVM ends its process where it cannot make code. Invalid has its
    message. A child costs some 10 ms, of a large process more; ``seconds``: after which it ends, 0 for never."""
    with TemporaryFile() as made, TemporaryFile() as said:
        with LOCK, _lock_of_finalizers(), catch_warnings():
            simplefilter("ignore", DeprecationWarning)  # of Python 3.12: other threads are not in the child
            child = os.fork()
        if not child:
            _work_as_child(work, made.fileno(), said.fileno(), seconds)
        with suppress(ChildProcessError):  # other code of the process has waited for it
            os.waitpid(child, 0)
        made.seek(0)
        said.seek(0)
        found = made.read()
        if not found:
            words = _NOTHING.sub("", " ".join(said.read().decode(errors="replace").split()))
            raise Invalid(words[:MOST_WORDS] or "LLVM ended without a word")
        return found


def _lock_of_finalizers() -> AbstractContextManager[object]:
    """llvmlite's own: they take it without ours. Held while a process forks, it is free of other owners in the
    child."""
    found: AbstractContextManager[object] = getattr(load_binding().ffi.lib, "_lock", nullcontext())
    return found


def _work_as_child(work: Callable[[], bytes], made: int, said: int, seconds: int) -> NoReturn:
    """Nothing of the parent's is tidied up here, however it ends: neither by Python nor by what LLVM's exit() calls."""
    try:
        faulthandler.disable()
        gc.disable()  # it would touch all objects of the parent, and so copy its memory
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(said, 2)
        library = ctypes.CDLL(None)
        getattr(library, "__cxa_atexit")(ctypes.cast(library["_exit"], ctypes.c_void_p), ctypes.c_void_p(1), None)
        with open(made, "wb", closefd=False) as output:
            output.write(work())
    except (LuthierError, RuntimeError) as error:
        os.write(said, str(error).encode())
    finally:
        os._exit(0)


def amdgpu_listing(ir: str, cpu: str, wave_size: int) -> str:
    """The same as text, which may have assembly in it."""
    with LOCK:
        machine = _amdgpu_machine(cpu, wave_size)
        return str(machine.emit_assembly(_optimise_module(ir, machine)))


def _optimise_module(ir: str, machine: Any) -> Any:
    """A module for an AMD GPU; the caller holds LOCK."""
    llvm = load_binding()
    module = parse(_amdgpu_header(machine) + ir)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = False
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return module


def parse(ir: str) -> Any:
    """A verified module; Invalid says what LLVM does not like (the caller holds LOCK)."""
    llvm = load_binding()
    try:
        module = llvm.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise Invalid("LLVM refuses a generated module: " + " ".join(str(error).split())) from error
    return module


def version() -> int:
    """LLVM's major version: it reads bitcode of this one and of older ones."""
    return int(load_binding().llvm_version_info[0])


def bitcode_text(data: bytes) -> str:
    """A module as text, in which a number after % is a type's; Invalid says what LLVM does not like."""
    with LOCK:
        llvm = load_binding()
        try:
            module = llvm.parse_bitcode(data)
        except RuntimeError as error:
            raise Invalid("LLVM cannot read this bitcode: " + " ".join(str(error).split())) from error
        passes = llvm.create_new_module_pass_manager()
        passes.add_instruction_namer_pass()
        passes.run(module, llvm.create_pass_builder(_host_machine(0), llvm.create_pipeline_tuning_options()))
        return str(module)


def amdgpu_transformed(ir: str, cpu: str, wave_size: int, *names: str) -> str:
    """A module of ``amdgpu_cs`` functions after passes, whose ``names`` are llvmlite's."""
    with LOCK:
        llvm = load_binding()
        machine = _amdgpu_machine(cpu, wave_size)
        module = parse(_amdgpu_header(machine) + ir)
        passes = llvm.create_new_module_pass_manager()
        for name in names:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
        return "".join(line for line in str(module).splitlines(keepends=True) if not line.startswith(_HEADER_LINES))


def _amdgpu_header(machine: Any) -> str:
    return f'target triple = "{_AMDGPU_TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'


@cache
def _amdgpu_machine(cpu: str, wave_size: int) -> Any:
    features = "+wavefrontsize64,-wavefrontsize32" if wave_size == 64 else "+wavefrontsize32,-wavefrontsize64"
    features += ",-64-bit-literals"  # a constant that is filled in later is one dword
    features += ",+enable-flat-scratch"  # a stack is at an offset in each lane's memory, and needs no buffer
    target = load_binding().Target.from_triple(_AMDGPU_TRIPLE)
    return target.create_target_machine(cpu=cpu, features=features, opt=2, reloc="pic")


class HostCode:
    """Machine code for this computer, callable as long as the object lives."""

    def __init__(self, code: bytes, exports: Iterable[str], imports: Mapping[str, int]) -> None:
        """Link an object: ``exports`` are functions of it, ``imports`` addresses of what it calls."""
        with LOCK:
            linker = _current_linker()
            library = load_binding().JITLibraryBuilder().add_object_img(code).add_current_process()
            for name, address in imports.items():
                library.import_symbol(name, address)
            for name in exports:
                library.export_symbol(name)
            self._tracker = library.link(linker.jit, f"luthier{linker.made}")
            weakref.finalize(self, linker.unlink, self._tracker).atexit = False

    def address(self, name: str) -> int:
        """Where an exported function is in this process, as long as this object lives; KeyError for what is not
        exported."""
        address: int = self._tracker[name]
        return address


class Effort(Enum):
    """How good host code gets."""

    FAST = auto()      # LLVM's fastest code generation
    GENERATE = auto()  # its good one
    OPTIMISE = auto()  # and its -O2 passes before


def host_object(ir: str, effort: Effort) -> bytes:
    """Compile a module for this computer."""
    with LOCK:
        machine = _host_machine(0 if effort is Effort.FAST else 2)
        module = parse(_host_header(machine) + ir)
        if effort is Effort.OPTIMISE:
            _run_host_passes(module, machine)
        code: bytes = machine.emit_object(module)
        return code


def host_function(bitcode: bytes, name: str, ir: str = "") -> bytes:
    """Optimise and compile one function of a module, with what it calls there and in ``ir``, for this computer.

    The module's own triple and data layout are replaced; ``ir`` defines what it only declares."""
    with LOCK:
        llvm = load_binding()
        machine = _host_machine(2)
        module = llvm.parse_bitcode(bitcode)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        if ir:
            module.link_in(parse(_host_header(machine) + ir))
        for function in module.functions:
            if not function.is_declaration and function.name != name:
                function.linkage = "internal"
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.add_always_inliner_pass()  # before other passes optimise general code that no caller uses
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
        _run_host_passes(module, machine)
        code: bytes = machine.emit_object(module)
        return code


def _host_header(machine: Any) -> str:
    return f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'


def _run_host_passes(module: Any, machine: Any) -> None:
    llvm = load_binding()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)


@cache
def host_identity() -> str:
    """What host code depends on beside its IR: LLVM's version and this processor."""
    llvm = load_binding()
    return f"{llvm.llvm_version_info} {llvm.get_host_cpu_name()} {_host_features()}"


def _host_features() -> str:
    """Of this processor, without AVX-512.

    LLVM 22 (seen: 22.1.0 and 22.1.8, znver4 and skylake-avx512) makes wrong code there of select(k, a & m | b & ~m, a)
    with a constant m: a masked VPTERNLOG with the table of another order of its operands.
    """
    features: str = load_binding().get_host_cpu_features().flatten()
    return f"{features},-avx512f" if "+avx512f" in features.split(",") else features


@cache
def _host_machine(level: int) -> Any:
    llvm = load_binding()
    target = llvm.Target.from_default_triple()
    cpu, features = llvm.get_host_cpu_name(), _host_features()
    return target.create_target_machine(cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small")


class _Linker:
    """Mutable: LLVM's linker, for a number of libraries: it keeps something of each, 9 kB, as long as it lives."""

    MOST = 64

    def __init__(self) -> None:
        self.jit = load_binding().create_lljit_compiler(use_jit_link=True)
        self.made = self.users = 0

    @property
    def full(self) -> bool:
        return self.made == self.MOST

    def unlink(self, library: Any) -> None:
        with LOCK:
            library.close()
            self.users -= 1
            if self.full and not self.users:
                self.jit.close()
                _linkers.remove(self)


_linkers: list[_Linker] = []


def _current_linker() -> _Linker:
    if not _linkers or _linkers[-1].full:
        _linkers.append(_Linker())
    linker = _linkers[-1]
    linker.made += 1
    linker.users += 1
    return linker


def text_section(code: bytes) -> bytes:
    """The machine code in an object file."""
    with LOCK:
        sections = load_binding().ObjectFileRef.from_data(code).sections()
        return b"".join(bytes(section.data()) for section in sections if section.is_text())
