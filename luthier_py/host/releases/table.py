"""Which releases of ROCm can be fetched, and of which packages they are.

In: a release's name. Out: suites and packages of Debian. Source: the package lists of the suites, as of November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.base.errors import Invalid, did_you_mean
from luthier_py.base.records import dataclass, field

_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_FOR_ALL = "clinfo", "libamdhip64-dev", "ocl-icd-libopencl1", "rocminfo"


@dataclass(frozen=True, slots=True)
class Release:
    """``suites``: of Debian, that with this ROCm first, then those that have what else it needs. ``runtime``: packages
    without which no program runs. ``libraries``: the others that programs use. ``also``: other places where
    programs look for a file, below the release's folder, with the file, below the root; a folder gets all that match.
    """

    name: str
    contents: str
    suites: tuple[str, ...]
    runtime: tuple[str, ...]
    libraries: tuple[str, ...]
    also: Mapping[str, str] = field(default_factory=dict)

    @property
    def packages(self) -> tuple[str, ...]:
        """All packages of the release, which `luthier fetch` takes unless it is given some; ``runtime`` first."""
        return self.runtime + self.libraries


RELEASES = {
    release.name: release
    for release in (
        Release(
            "rocm-7.2", "HIP, ROCr and all libraries 7.2.4", ("experimental", "sid"),
            (*_FOR_ALL, "libamdhip64-7", "libhiprtc7", "libhiprtc-builtins7", "libhsa-runtime64-1", "rocm-opencl-icd",
             "rocm-smi"),
            ("amd-smi", "libhipblas3", "libhipblaslt1", "libhipfft0", "libhiprand1", "libhipsolver1", "libhipsparse4",
             "libmiopen1", "librccl1", "librocblas5", "librocfft0", "librocm-core1", "librocprofiler-register-0",
             "librocrand1", "librocsolver0", "librocsparse1", "libroctx64-4"),
            {f"also/{name}.{of_amd}": f"{_LIBRARIES}/{name}.{here}"  # the names that wheels are linked with
             for name, of_amd, here in (("librocm_smi64.so", 1, 7), ("libamd_smi.so", 26, 27))},
        ),
        Release(
            "rocm-6.4", "HIP, ROCr and most libraries 6.4.3", ("sid",),
            (*_FOR_ALL, "libamdhip64-6", "libhiprtc6", "libhiprtc-builtins6", "libhsa-runtime64-1", "rocm-opencl-icd",
             "rocm-smi"),
            ("libggml0-backend-hip", "libhipblas2", "libhipfft0", "libhiprand1", "librocblas4", "librocfft0",
             "librocrand1", "librocsolver0", "librocsparse1", "llama.cpp-tests", "llama.cpp-tools"),
            {"unpacked/usr/bin/": f"{_LIBRARIES}/ggml/backends*/*.so"},  # llama.cpp's, beside its programs
        ),
        Release(
            "rocm-5.7", "HIP 5.7.1 on ROCr 6.1.2", ("trixie",),
            (*_FOR_ALL, "libamdhip64-5", "libhiprtc-builtins5", "libhsa-runtime64-1", "rocm-opencl-icd", "rocm-smi"),
            ("librocfft0", "librocrand1"),
        ),
        Release(
            "rocm-5.2", "HIP and ROCr 5.2.3", ("bookworm",),
            (*_FOR_ALL, "libamdhip64-5", "libhiprtc-builtins5", "libhsa-runtime64-1", "rocm-device-libs"),
            ("librocrand1", "librocsparse0"),
        ),
    )
}  # fmt: skip


def release_called(name: str) -> Release:
    """Invalid for a name that no release has."""
    found = RELEASES.get(name)
    if found is None:
        raise Invalid(f"no release of ROCm is called {name}; there are {', '.join(RELEASES)}"
                      f"{did_you_mean(name if name.startswith('rocm') else f'rocm-{name}', RELEASES)}")
    return found
