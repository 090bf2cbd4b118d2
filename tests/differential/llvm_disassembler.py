"""LLVM's disassembler as an oracle, in a child process, because it crashes on some words.

As a program: ``llvm_disassembler.py LIBRARY CPU FEATURES`` reads words in hexadecimal, one a line, and answers
``length<TAB>text`` for each; length 0 means that there is no instruction. As a module: :func:`disassemble`.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence

CRASHED = (-1, "")
ROOM = 512


def disassemble(tool: str, cpu: str, words: Sequence[bytes], features: str = "") -> list[tuple[int, str]]:
    """(length, text) of each word as the libLLVM that ``tool`` is linked to reads it; CRASHED where that crashed."""
    lines = "".join(f"{word.hex()}\n" for word in words)
    command = [sys.executable, __file__, library_of(tool), cpu, features]
    answers = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    found = []
    for line in answers:
        length, _, text = line.partition("\t")
        found.append((int(length), text))
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

    def answer(line: str) -> bytes:
        word = bytes.fromhex(line)
        length = llvm.LLVMDisasmInstruction(machine, word, len(word), 0, text, ROOM)
        return b"%d\t%s\n" % (length, text.value.strip() if length else b"")

    _answer_all(answer, sys.stdin.read().split())


def _answer_all(answer: Callable[[str], bytes], lines: Sequence[str]) -> None:
    """In a child of this process, and where that crashes in another for what is left."""
    answered = mmap.mmap(-1, 8)
    while (first := int.from_bytes(answered[:8], "little")) < len(lines):
        if (child := os.fork()) == 0:
            for place in range(first, len(lines)):
                os.write(1, answer(lines[place]))
                answered[:8] = (place + 1).to_bytes(8, "little")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            os.write(1, b"%d\t\n" % CRASHED[0])
            crashed = int.from_bytes(answered[:8], "little")
            answered[:8] = (crashed + 1).to_bytes(8, "little")


if __name__ == "__main__":
    _serve(*sys.argv[1:])
