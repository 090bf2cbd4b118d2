"""LLVM's disassembler as an oracle, in a child process, because it crashes on some words.

As a program: ``llvm_disassembler.py LIBRARY CPU FEATURES`` reads words in hexadecimal, one a line, and answers
``length<TAB>text`` for each; length 0 means that there is no instruction. As a module: :func:`disassemble`.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Sequence

CRASHED = (-1, "")
ROOM = 512


def disassemble(tool: str, cpu: str, words: Sequence[bytes], features: str = "") -> list[tuple[int, str]]:
    """(length, text) of each word as the libLLVM that ``tool`` is linked to reads it; CRASHED where that crashed."""
    library = library_of(tool)
    found: list[tuple[int, str]] = []
    while len(found) < len(words):
        lines = "".join(f"{word.hex()}\n" for word in words[len(found):])
        command = [sys.executable, __file__, library, cpu, features]
        child = subprocess.run(command, input=lines, capture_output=True, text=True)
        for line in child.stdout.splitlines():
            length, _, text = line.partition("\t")
            found.append((int(length), text))
        if len(found) < len(words):
            found.append(CRASHED)
    return found


def library_of(tool: str) -> str:
    """The path of the shared libLLVM that a program of the same LLVM uses."""
    linked = subprocess.run(["ldd", tool], capture_output=True, text=True, check=True).stdout
    found = re.search(r"libLLVM\S* => (\S+)", linked)
    assert found is not None, f"{tool} is not linked to libLLVM"
    return found.group(1)


def _serve(library: str, cpu: str, features: str) -> None:
    llvm = ctypes.CDLL(library)
    for part in ("TargetInfo", "Target", "TargetMC", "Disassembler"):
        getattr(llvm, f"LLVMInitializeAMDGPU{part}")()
    llvm.LLVMCreateDisasmCPUFeatures.restype = ctypes.c_void_p
    llvm.LLVMDisasmInstruction.restype = ctypes.c_size_t
    llvm.LLVMDisasmInstruction.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64,
                                           ctypes.c_char_p, ctypes.c_size_t]
    machine = llvm.LLVMCreateDisasmCPUFeatures(
        b"amdgcn-amd-amdhsa", cpu.encode(), features.encode(), None, 0, None, None)
    llvm.LLVMSetDisasmOptions(ctypes.c_void_p(machine), ctypes.c_uint64(2))  # immediates in hexadecimal
    text = ctypes.create_string_buffer(ROOM)
    for line in sys.stdin:
        word = bytes.fromhex(line)
        length = llvm.LLVMDisasmInstruction(machine, word, len(word), 0, text, ROOM)
        print(length, text.value.decode(errors="replace").strip() if length else "", sep="\t", flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
