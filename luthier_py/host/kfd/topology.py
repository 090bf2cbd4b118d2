"""What sysfs would say of the emulated GPUs: a folder of small files, by content in the user's cache.

In: targets and the size of their memory. Out: the folder, with kfd (topology), amdgpu (the module), char (device
numbers) and dri in it. Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c and include/uapi/linux/kfd_sysfs.h.
Invariant: a folder appears whole or not at all.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from luthier_py.base.storage import cache_folder, cache_key, own_folder
from luthier_py.emulator.waves.residency import COMPUTE_UNITS
from luthier_py.host.kfd.protocol import FIRST_GPU
from luthier_py.host.worker.device import properties
from luthier_py.isa import Setting, Target
from luthier_py.isa.model.cards import PCI_VENDOR, gfx_version, pci_device

FIRST_RENDER = 128
SDMA_ENGINES, SDMA_QUEUES, COMPUTE_QUEUES, GWS = 2, 8, 24, 64
_CLOCK_MHZ = 1000
_DATA, _CPU, _OF_CU = 1, 4, 8  # kinds of cache
_QUEUE_SIZE_POW2, _DOORBELLS_64, _COHERENT_HOST_ACCESS, _SRAM_ECC = 0x8, 0x2000, 0x1000_0000, 0x400_0000
_RUNTIME_ENABLE = 0x8000 | 0x2000_0000  # traps and firmware of debuggers: without them ROCr does not say what it loads
_SVM_API = 0x800_0000
_CAPABILITIES = _QUEUE_SIZE_POW2 | _DOORBELLS_64 | _COHERENT_HOST_ACCESS | _RUNTIME_ENABLE
USE_SVM = "HSA_USE_SVM"
"""ROCr's variable: with 0 it does without shared virtual memory. Here a program has to ask for it, by 1: pages that it
has pinned once stay shared files then, so `realloc` (mremap) of them, or MADV_DONTNEED, would not do as Linux says."""
_LINK_PCIE = 2


def gpu_id(number: int) -> int:
    """KFD's name for a GPU."""
    return FIRST_GPU + number


def _unique(number: int) -> int:
    return 0x4C55_5448_0000 + number


def sysfs(targets: Sequence[Target], memory_bytes: int) -> Path:
    """The folder; raises OSError where none can be made."""
    files = dict(_files(targets, memory_bytes))
    key = cache_key(*files, *(text.encode() for text in files.values()))[:24]
    cache = cache_folder()
    parent = Path(tempfile.gettempdir()) / f"luthier-{os.getuid()}" if cache is None else cache
    own_folder(parent)
    folder = parent / "sysfs" / key
    if not folder.is_dir():
        own_folder(folder.parent)
        draft = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=folder.parent))
        for name, text in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        try:
            draft.rename(folder)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)  # another process was first
    return folder


def _files(targets: Sequence[Target], memory_bytes: int) -> Iterable[tuple[str, str]]:
    top = "kfd/topology"
    yield f"{top}/generation_id", "1\n"
    yield f"{top}/system_properties", _lines({"platform_oem": 0, "platform_id": 0, "platform_rev": 0})
    yield "amdgpu/initstate", "live\n"
    yield "amdgpu/version", "6.1.0\n"
    ids = {pci_device(target): properties.device_name(target) for target in targets}
    yield "amdgpu.ids", "1.0.0\n" + "".join(f"{device:04X},\t00,\t{name}\n" for device, name in ids.items())
    yield from _cpu_node(f"{top}/nodes/0", len(targets))
    for number, target in enumerate(targets):
        yield from _gpu_node(f"{top}/nodes/{number + 1}", number, target, memory_bytes, len(targets))
        yield from _device_files(number, target, memory_bytes)


def _lines(rows: Mapping[str, object]) -> str:
    return "".join(f"{name} {value}\n" for name, value in rows.items())


def _cpu_node(node: str, gpus: int) -> Iterable[tuple[str, str]]:
    cores = os.cpu_count() or 1
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    counts = {"mem_banks_count": 1, "caches_count": 1, "io_links_count": gpus, "p2p_links_count": 0}
    yield f"{node}/gpu_id", "0\n"
    yield f"{node}/name", "\n"
    yield f"{node}/properties", _lines({"cpu_cores_count": cores, "simd_count": 0, **counts, "cpu_core_id_base": 0})
    yield f"{node}/mem_banks/0/properties", _bank(0, memory, 64)
    yield f"{node}/caches/0/properties", _cache(0, 3, 8192, _CPU | _DATA)
    for number in range(gpus):
        yield f"{node}/io_links/{number}/properties", _link(0, number + 1)


def _gpu_node(
    node: str, number: int, target: Target, memory_bytes: int, gpus: int
) -> Iterable[tuple[str, str]]:
    ecc = properties.architecture(target).sramecc is Setting.ON
    yield f"{node}/gpu_id", f"{gpu_id(number)}\n"
    yield f"{node}/name", f"{properties.device_name(target)}\n"
    yield f"{node}/properties", _lines({
        "cpu_cores_count": 0, "simd_count": COMPUTE_UNITS * target.simds, "mem_banks_count": 1, "caches_count": 2,
        "io_links_count": 1, "p2p_links_count": gpus - 1, "cpu_core_id_base": 0,
        "simd_id_base": 0x8000_1000 + (number << 12),
        "max_waves_per_simd": target.max_waves_per_simd, "lds_size_in_kb": target.lds_bytes >> 10, "gds_size_in_kb": 0,
        "num_gws": GWS, "wave_front_size": target.wave_sizes[0], "array_count": 1, "simd_arrays_per_engine": 1,
        "cu_per_simd_array": COMPUTE_UNITS, "simd_per_cu": target.simds, "max_slots_scratch_cu": 32,
        "gfx_target_version": gfx_version(target), "vendor_id": PCI_VENDOR, "device_id": pci_device(target),
        "location_id": properties.device_bus(number) << 8, "domain": 0, "hive_id": 0,
        "drm_render_minor": FIRST_RENDER + number,
        "num_sdma_engines": SDMA_ENGINES, "num_sdma_xgmi_engines": 0, "num_sdma_queues_per_engine": SDMA_QUEUES,
        "num_cp_queues": COMPUTE_QUEUES, "max_engine_clk_fcompute": _CLOCK_MHZ, "local_mem_size": memory_bytes,
        "fw_version": 500, "capability": _CAPABILITIES | _SRAM_ECC * ecc | _SVM_API * (os.environ.get(USE_SVM) == "1"),
        "debug_prop": 0, "sdma_fw_version": 50, "unique_id": _unique(number), "num_xcc": 1,
        "max_engine_clk_ccompute": _CLOCK_MHZ,
    })  # fmt: skip
    yield f"{node}/mem_banks/0/properties", _bank(1, memory_bytes, 4096)
    yield f"{node}/caches/0/properties", _cache(0x8000_1000 + (number << 12), 1, 16, _OF_CU | _DATA)
    yield f"{node}/caches/1/properties", _cache(0x8000_1000 + (number << 12), 2, 8192, _OF_CU | _DATA)
    yield f"{node}/io_links/0/properties", _link(number + 1, 0)
    for link, other in enumerate(other for other in range(gpus) if other != number):
        yield f"{node}/p2p_links/{link}/properties", _link(number + 1, other + 1)


def _bank(heap: int, size: int, width: int) -> str:
    return _lines({"heap_type": heap, "size_in_bytes": size, "flags": 0, "width": width, "mem_clk_max": _CLOCK_MHZ})


def _cache(processor: int, level: int, kilobytes: int, kind: int) -> str:
    rows = {"processor_id_low": processor, "level": level, "size": kilobytes, "cache_line_size": 64,
            "cache_lines_per_tag": 1, "association": 16, "latency": 0, "type": kind}  # fmt: skip
    return _lines(rows) + "sibling_map " + ",".join(["1"] + ["0"] * 31) + "\n"


def _link(start: int, end: int) -> str:
    return _lines({"type": _LINK_PCIE, "version_major": 0, "version_minor": 0, "node_from": start, "node_to": end,
                   "weight": 20 if 0 in (start, end) else 40, "min_latency": 0, "max_latency": 0,
                   "min_bandwidth": 0, "max_bandwidth": 0, "recommended_transfer_size": 0, "flags": 1})  # fmt: skip


def _device_files(number: int, target: Target, memory_bytes: int) -> Iterable[tuple[str, str]]:
    minor = FIRST_RENDER + number
    yield f"dri/renderD{minor}", ""
    for device in (f"char/226:{minor}/device", f"drm/card{number}/device", f"drm/renderD{minor}/device"):
        yield f"{device}/drm/card{number}/dev", f"226:{number}\n"
        yield f"{device}/drm/renderD{minor}/dev", f"226:{minor}\n"
        yield f"{device}/vendor", f"{PCI_VENDOR:#06x}\n"
        yield f"{device}/device", f"{pci_device(target):#06x}\n"
        yield f"{device}/uevent", f"DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{properties.device_bus(number):02x}:00.0\n"
        yield f"{device}/product_name", f"{properties.device_name(target)}\n"
        yield f"{device}/unique_id", f"{_unique(number):x}\n"
        yield f"{device}/mem_info_vram_total", f"{memory_bytes}\n"
