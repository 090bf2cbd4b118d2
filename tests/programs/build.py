"""HIP programs, host and device code, from source to executable with clang-22 alone.

In: a .hip file, targets, a folder of HIP headers, a folder with libamdhip64. Out: an executable. The steps are those of
clang's own driver; the fat binary is written here, since the driver's bundler comes with another package.
As a command: FOLDER [NAME...] [--targets T,...] [-g], where a name with .hip at its end is a file of your own.
Headers: LUTHIER_HIP_INCLUDE, ROCm's, or those that the PyPI package triton carries. A source with the line LINKED gets
AMD's own device library as well, which lies beside these headers. Code object version 4 is for ROCm 5.2, which
loads none above.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import zstandard

HERE = Path(__file__).parent
COMPILER = "clang++-22"
HOST, DEVICE = ("--cuda-host-only", "-O0"), ("--cuda-device-only",)  # nobody waits for host code, but for its compiler
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
ALIGN = 4096
WAVE64 = "-mwavefrontsize64"
CODE_OBJECT = 6
LINKED = "// Linked with ROCm's device library."


def header_folders() -> list[Path]:
    """Where HIP headers are on this machine, the best first."""
    places = [Path(p) for p in os.environ.get("LUTHIER_HIP_INCLUDE", "").split(os.pathsep) if p]
    places.append(Path("/opt/rocm/include"))
    places += sorted((Path.home() / ".cache" / "luthier" / "hip-headers").glob("*"))
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin is not None:
        places.append(Path(spec.origin).parent / "backends" / "amd" / "include")
    return [place for place in places if (place / "hip" / "hip_runtime.h").exists()]


def hip_major(headers: Path) -> int:
    """The HIP release that these headers belong to."""
    for line in (headers / "hip" / "hip_version.h").read_text().splitlines():
        if line.startswith("#define HIP_VERSION_MAJOR"):
            return int(line.split()[2])
    raise ValueError(f"{headers}: hip_version.h names no version")


def device_library(headers: Path) -> Path | None:
    """ockl.bc: beside the headers as in the wheel and in ROCm, or where Debian's rocm-device-libs has it."""
    folders = [headers.parent / "lib", headers.parent / "amdgcn" / "bitcode"]
    folders.append(Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"))
    return next((folder / "ockl.bc" for folder in folders if (folder / "ockl.bc").exists()), None)


def isa_version(target: str) -> int:
    digits = target.removeprefix("gfx")
    return int(digits[:-2]) * 1000 + int(digits[-2], 16) * 100 + int(digits[-1], 16)


def wave_size(target: str, extra: Sequence[str]) -> int:
    """What clang compiles for."""
    return 64 if isa_version(target) < 10000 or WAVE64 in extra else 32


def target_constants(target: str, code_object: int, folder: Path, lanes: int) -> Path:
    """The bitcode that tells the device library its target: what ROCm has as oclc_*.bc."""
    values = (
        ("ISA_version", "i32", isa_version(target)),
        ("ABI_version", "i32", 100 * code_object),
        ("wavefrontsize64", "i8", int(lanes == 64)),
        ("wavefrontsize_log2", "i32", lanes.bit_length() - 1),
    )
    text = folder / f"oclc-{target}-{code_object}.ll"
    attributes = "linkonce_odr hidden addrspace(4) constant"
    lines = [f"@__oclc_{name} = {attributes} {kind} {value}\n" for name, kind, value in values]
    text.write_text('target triple = "amdgcn-amd-amdhsa"\n' + "".join(lines))
    output = text.with_suffix(".bc")
    how = "--target=amdgcn-amd-amdhsa", "-nogpulib", "-w", "-x", "ir", "-emit-llvm", "-c"
    run(COMPILER, *how, str(text), "-o", str(output))
    return output


def library_options(
    source: Path, library: Path | None, target: str, code_object: int, folder: Path, extra: Sequence[str]
) -> list[str]:
    """Without an optimiser the headers' own assertions stay, and want the library."""
    if LINKED not in source.read_text() and "-O0" not in extra:
        return []
    if library is None:
        raise RuntimeError(f"{source.name} needs ROCm's device library, ockl.bc: there is none beside HIP's headers")
    files = library, target_constants(target, code_object, folder, wave_size(target, extra))
    return [word for file in files for word in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(file))]


def options(headers: Path, lanes: int, precompiled: Path | None = None) -> list[str]:
    return [
        "-x",
        "hip",
        "-std=c++17",
        "-O2",
        "-nogpulib",
        "-nogpuinc",
        "-w",
        "-D__HIP_PLATFORM_AMD__",
        f"-D__AMDGCN_WAVEFRONT_SIZE={lanes}",
        "-isystem",
        str(headers),
        *(("-include", str(HERE / "headers.h")) if precompiled is None else ("-include-pch", str(precompiled))),
    ]


def precompile(
    headers: Path, output: Path, target: str, extra: Sequence[str] = (), code_object: int = CODE_OBJECT
) -> None:
    """What every program begins with, for `build` with the same options: the host's side, and beside it the device's.
    To read HIP's headers takes three times as long as all else."""
    for side, path in ((HOST, output), (DEVICE, output.with_suffix(".device"))):
        run(COMPILER, *options(headers, wave_size(target, extra)), f"--offload-arch={target}", *side,
            f"-mcode-object-version={code_object}", *extra, "-S", "-Xclang", "-emit-pch",
            str(HERE / "headers.h"), "-o", str(path))


def bundle(objects: dict[str, bytes]) -> bytes:
    """A fat binary: code objects by target name (Clang documentation, "ClangOffloadBundler")."""
    entries = [("host-x86_64-unknown-linux-gnu", b"")]
    entries += [(f"hipv4-amdgcn-amd-amdhsa--{name}", data) for name, data in objects.items()]
    table = MAGIC + struct.pack("<Q", len(entries))
    place = ALIGN
    body = bytearray()
    for name, data in entries:
        table += struct.pack("<3Q", place + len(body), len(data), len(name)) + name.encode()
        body += data.ljust(-(-len(data) // ALIGN) * ALIGN, b"\0")
    return table.ljust(place, b"\0") + bytes(body)


def compress(fat: bytes, version: int) -> bytes:
    """A fat binary as --offload-compress leaves it (LLVM, OffloadBundler.cpp)."""
    packed = zstandard.compress(fat)
    digest = int.from_bytes(hashlib.md5(fat).digest()[:8], "little")
    layout = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}[version]
    sizes = (struct.calcsize(layout) + len(packed), len(fat))[version == 1 :]
    return struct.pack(layout, b"CCOB", version, 1, *sizes, digest) + packed


def build(
    source: Path, output: Path, headers: Path, libraries: Path, targets: Sequence[str], extra: Sequence[str] = (),
    abi: int | None = None, compressed: int = 0, entry: str = "", code_object: int = CODE_OBJECT,
    library: Path | None = None, link: Sequence[str] = (), precompiled: Path | None = None,
) -> Path:
    """Compile, and link libamdhip64.so.ABI (that of the headers by default); RuntimeError has the compiler's words.

    ``compressed``: the version of compressed bundles to use, 0 for a plain one. ``entry``: make a shared library, in
    which the source's main has this name. ``code_object``: its version. ``library``: ockl.bc, where
    it is not the one beside the headers. ``link``: more options of the linker. ``precompiled``: see `precompile`.
    """
    bitcode = library or device_library(headers)
    extra = (*extra, f"-mcode-object-version={code_object}")
    if entry:
        extra = (*extra, "-fPIC", f"-Dmain={entry}")
    objects = {}
    for name in targets:
        code = output.with_suffix(f".{name}.co")
        run(
            COMPILER,
            *options(headers, wave_size(name, extra), precompiled and precompiled.with_suffix(".device")),
            f"--offload-arch={name}",
            *DEVICE,
            "--no-gpu-bundle-output",
            *library_options(source, bitcode, name, code_object, output.parent, extra),
            *extra,
            str(source),
            "-o",
            str(code),
        )
        objects[name] = code.read_bytes()
    fat = output.with_suffix(".hipfb")
    fat.write_bytes(compress(bundle(objects), compressed) if compressed else bundle(objects))
    host = output.with_suffix(".o")
    run(
        COMPILER,
        *options(headers, wave_size(targets[0], extra), precompiled),
        f"--offload-arch={targets[0]}",
        *HOST,
        "-Xclang",
        "-fcuda-include-gpubinary",
        "-Xclang",
        str(fat),
        *extra,
        "-c",
        str(source),
        "-o",
        str(host),
    )
    runtime = f"-l:libamdhip64.so.{abi or hip_major(headers)}"
    kind = ["-shared"] if entry else []
    kind.append("-Wl,--allow-shlib-undefined")  # what ROCm's library itself needs is looked for when the program runs
    run(COMPILER, *kind, str(host), "-o", str(output), f"-L{libraries}", runtime, "-pthread", *link)
    return output


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")


def build_programs(
    names: Sequence[str], folder: Path, targets: Sequence[str], extra: Sequence[str] = ()
) -> list[Path]:
    """Programs of this folder, or files, against the newest headers; RuntimeError where there are none."""
    from luthier_py.host.hip import runtime_folder

    found = header_folders()
    if not found:
        raise RuntimeError("no HIP headers: install ROCm, or triton from PyPI, which has them (`.venv/bin/python -m "
                           "pip install --no-deps triton==3.9.0`), or set LUTHIER_HIP_INCLUDE")  # fmt: skip
    headers = max(found, key=hip_major)
    folder.mkdir(parents=True, exist_ok=True)
    sources = [Path(name) if name.endswith(".hip") else HERE / f"{name}.hip" for name in names]
    return [build(source, folder / source.stem, headers, runtime_folder(), targets, extra) for source in sources]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile HIP programs; each target's code object is left beside them")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of this folder, or your own .hip file; default: all")
    parser.add_argument("--targets", default="gfx90a", help="with commas between them; default: gfx90a")
    parser.add_argument("-g", action="store_true", dest="lines", help="with line tables, so that findings name lines")
    given = parser.parse_args()
    every = sorted(path.stem for path in HERE.glob("*.hip"))
    try:
        build_programs(given.names or every, given.folder, given.targets.split(","),
                       ("-gline-tables-only",) if given.lines else ())
    except (RuntimeError, FileNotFoundError) as error:
        sys.exit(f"{HERE.name}: {error}")


if __name__ == "__main__":
    main()
