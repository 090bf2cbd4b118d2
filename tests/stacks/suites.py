"""The suites of Debian that have a ROCm, and how programs are built and run on each.

In: a suite's name, a folder. Out: packages, options of the compiler, command lines. Invariant: a program runs with the
suite's own loader, libc and ROCm; of the machine's libraries it has Luthier-py's, and LLVM 19's OpenMP.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packages import unpack

MACHINE = Path("/usr/lib/x86_64-linux-gnu")
LOADER = "ld-linux-x86-64.so.2"
OPENMP_LIBRARIES = Path("/usr/lib/llvm-19/lib")
COMMON = (
    "clinfo", "libamdhip64-dev", "libhsa-runtime-dev", "librocrand1", "ocl-icd-libopencl1",
    "opencl-c-headers", "rocminfo",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Suite:
    """``code_object``: the newest version that its HIP loads; ``abi``: of libamdhip64.so; ``beside``: a suite that has
    what this one has not."""

    name: str
    code_object: int
    abi: int
    packages: tuple[str, ...]
    beside: tuple[str, ...] = ()


SUITES = {
    suite.name: suite
    for suite in (
        Suite("bookworm", 4, 5, (*COMMON, "libhiprtc-builtins5", "rocm-device-libs")),
        Suite("trixie", 5, 5, (*COMMON, "libhiprtc-builtins5", "rocm-opencl-icd", "librocfft0", "rocm-smi")),
        Suite("sid", 6, 6, (*COMMON, "libhiprtc6", "rocm-opencl-icd", "librocfft0", "rocm-smi")),
        Suite("experimental", 6, 7, (*COMMON, "libhiprtc7", "librocblas5", "librocfft0", "librocsolver0", "rocm-smi",
                                         "python3-numpy"), ("sid",)),
    )
}


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A suite below ``root``; ``versions``: of its packages."""

    suite: Suite
    root: Path
    versions: dict[str, str]

    @property
    def libraries(self) -> Path:
        return self.root / "usr" / "lib" / "x86_64-linux-gnu"

    @property
    def headers(self) -> Path:
        return self.root / "usr" / "include"

    @property
    def folders(self) -> list[Path]:
        """Of libraries: those of a suite that has not merged /usr lie in /lib, too; BLAS is where nobody chose one."""
        own = self.root / "lib" / "x86_64-linux-gnu", self.libraries / "blas", self.libraries / "lapack"
        return [self.libraries, *own, OPENMP_LIBRARIES]

    @property
    def loader(self) -> Path:
        return next(folder / LOADER for folder in self.folders if (folder / LOADER).exists())

    @property
    def link(self) -> list[str]:
        """What makes a program one of this suite: DT_RPATH holds for the libraries that a library needs, too."""
        paths = ":".join(map(str, self.folders))
        return [f"-Wl,--dynamic-linker={self.loader}", f"-Wl,-rpath,{paths}", "-Wl,--disable-new-dtags"]

    def program(self, path: Path, *arguments: str) -> list[str]:
        """A program linked with ``link``. Libraries with a DT_RUNPATH do not look into its DT_RPATH for theirs, so
        those that the machine does not have are named in LD_LIBRARY_PATH; not libc: Luthier-py's worker has it, too.
        """
        opened = self.root.parent / "opened"
        if not opened.exists():
            opened.mkdir()
            for library in self.libraries.glob("*.so.*"):
                if not (MACHINE / library.name).exists():
                    (opened / library.name).symlink_to(library)
            (opened / "libhsa-runtime64.so").symlink_to(self.libraries / "libhsa-runtime64.so.1")
        return ["env", f"LD_LIBRARY_PATH={opened}", str(path), *arguments]

    def command(self, program: Path, *arguments: str) -> list[str]:
        """A program of a package, by this suite's loader."""
        return [str(self.loader), "--library-path", ":".join(map(str, self.folders)), str(program), *arguments]

    def release(self) -> str:
        """What it is of ROCm, by its packages."""
        names = {"HIP": f"libamdhip64-{self.suite.abi}", "ROCr": "libhsa-runtime64-1", "libhsakmt": "libhsakmt1"}
        found = ((what, self.versions[name]) for what, name in names.items() if name in self.versions)
        return ", ".join(f"{what} {version.split('-')[0].split('+')[0]}" for what, version in found)


def unpacked(name: str, folder: Path) -> Unpacked:
    """In FOLDER/NAME; fetched at first use."""
    suite = SUITES[name]
    versions = unpack((name, *suite.beside), suite.packages, folder / name)
    return Unpacked(suite, (folder / name / "unpacked").resolve(), versions)
