"""What the emulated device says of itself, in the forms that HIP programs ask for.

In: a Target. Out: the two layouts of hipDeviceProp_t (before HIP 6, and since), attributes by number.
Source: the HIP 5.2 and 7.1 headers. Invariant: fields that are not known here are zero, and so is what the device
lacks: images, launches over several devices that wait for each other.
"""

from __future__ import annotations

import os
import re
import struct

from luthier_py.host.native.protocol import Form
from luthier_py.host.worker.device.settings import MEMORY_BYTES
from luthier_py.isa import MAX_WORKITEMS, Setting, Target, TargetId

_LARGEST = 2**31 - 1
_L2_BYTES = 4 << 20
# Counts and flags that are 1.
_PRESENT = (
    "globalL1CacheSupported localL1CacheSupported concurrentKernels canMapHostMemory cooperativeLaunch "
    "managedMemory concurrentManagedAccess directManagedMemAccessFromHost unifiedAddressing "
    "memoryPoolsSupported hostRegisterSupported hostNativeAtomicSupported asyncEngineCount deviceOverlap "
    "streamPrioritiesSupported isLargeBar fineGrainSupport xccs streamWaitValue "
    "virtualMemoryManagement memoryPoolSupportedHandleTypes ipcEventSupported"
).split()
# hipDeviceArch_t, from bit 0 on; what AMD's runtime says no to is a blank (ROCm/clr, ihipGetDeviceProperties).
_ARCHITECTURE = (
    "hasGlobalInt32Atomics hasGlobalFloatAtomicExch hasSharedInt32Atomics hasSharedFloatAtomicExch hasFloatAtomicAdd "
    "hasGlobalInt64Atomics hasSharedInt64Atomics hasDoubles hasWarpVote hasWarpBallot hasWarpShuffle - "
    "hasThreadFenceSystem - - has3dGrid -"
).split()
_SIZES = {"i": 4, "q": 8, "c": 1}

# name, with its type (c char, i int, q size_t or pointer) and count.
LAYOUT_R0000 = """
 name:256c totalGlobalMem:q sharedMemPerBlock:q regsPerBlock:i warpSize:i maxThreadsPerBlock:i maxThreadsDim:3i
maxGridSize:3i clockRate:i memoryClockRate:i memoryBusWidth:i totalConstMem:q major:i minor:i multiProcessorCount:i
l2CacheSize:i maxThreadsPerMultiProcessor:i computeMode:i clockInstructionRate:i arch:i concurrentKernels:i
pciDomainID:i pciBusID:i pciDeviceID:i maxSharedMemoryPerMultiProcessor:q isMultiGpuBoard:i canMapHostMemory:i
gcnArch:i gcnArchName:256c integrated:i cooperativeLaunch:i cooperativeMultiDeviceLaunch:i maxTexture1DLinear:i
maxTexture1D:i maxTexture2D:2i maxTexture3D:3i hdpMemFlushCntl:q hdpRegFlushCntl:q memPitch:q textureAlignment:q
texturePitchAlignment:q kernelExecTimeoutEnabled:i ECCEnabled:i tccDriver:i unmatched:4i isLargeBar:i asicRevision:i
managedMemory:i directManagedMemAccessFromHost:i concurrentManagedAccess:i pageableMemoryAccess:i
pageableMemoryAccessUsesHostPageTables:i
"""
LAYOUT_R0600 = """
 name:256c uuid:16c luid:8c luidDeviceNodeMask:i totalGlobalMem:q sharedMemPerBlock:q regsPerBlock:i warpSize:i
memPitch:q maxThreadsPerBlock:i maxThreadsDim:3i maxGridSize:3i clockRate:i totalConstMem:q major:i minor:i
textureAlignment:q texturePitchAlignment:q deviceOverlap:i multiProcessorCount:i kernelExecTimeoutEnabled:i
integrated:i canMapHostMemory:i computeMode:i textures:26i surfaces:14i surfaceAlignment:q concurrentKernels:i
ECCEnabled:i pciBusID:i pciDeviceID:i pciDomainID:i tccDriver:i asyncEngineCount:i unifiedAddressing:i
memoryClockRate:i memoryBusWidth:i l2CacheSize:i persistingL2CacheMaxSize:i maxThreadsPerMultiProcessor:i
streamPrioritiesSupported:i globalL1CacheSupported:i localL1CacheSupported:i sharedMemPerMultiprocessor:q
regsPerMultiprocessor:i managedMemory:i isMultiGpuBoard:i multiGpuBoardGroupID:i hostNativeAtomicSupported:i
singleToDoublePrecisionPerfRatio:i pageableMemoryAccess:i concurrentManagedAccess:i computePreemptionSupported:i
canUseHostPointerForRegisteredMem:i cooperativeLaunch:i cooperativeMultiDeviceLaunch:i sharedMemPerBlockOptin:q
pageableMemoryAccessUsesHostPageTables:i directManagedMemAccessFromHost:i maxBlocksPerMultiProcessor:i
accessPolicyMaxWindowSize:i reservedSharedMemPerBlock:q hostRegisterSupported:i sparseHipArraySupported:i
hostRegisterReadOnlySupported:i timelineSemaphoreInteropSupported:i memoryPoolsSupported:i gpuDirectRDMASupported:i
gpuDirectRDMAFlushWritesOptions:i gpuDirectRDMAWritesOrdering:i memoryPoolSupportedHandleTypes:i
deferredMappingHipArraySupported:i ipcEventSupported:i clusterLaunch:i unifiedFunctionPointers:i reserved:95i
gcnArchName:256c maxSharedMemoryPerMultiProcessor:q clockInstructionRate:i arch:i hdpMemFlushCntl:q
hdpRegFlushCntl:q unmatched:4i isLargeBar:i asicRevision:i
"""
# hipDeviceAttribute_t: number and property; an index where the property is an array. Those that AMD's runtime knows
# (ROCm/clr, hipDeviceGetAttribute): the others of HIP's header are for CUDA only, and hipErrorInvalidValue.
ATTRIBUTES = """
0:ECCEnabled 1:accessPolicyMaxWindowSize 2:asyncEngineCount 3:canMapHostMemory 4:canUseHostPointerForRegisteredMem
5:clockRate 6:computeMode 7:computePreemptionSupported 8:concurrentKernels 9:concurrentManagedAccess
10:cooperativeLaunch 11:cooperativeMultiDeviceLaunch 12:deviceOverlap 13:directManagedMemAccessFromHost
14:globalL1CacheSupported 15:hostNativeAtomicSupported 16:integrated 17:isMultiGpuBoard 18:kernelExecTimeoutEnabled
19:l2CacheSize 20:localL1CacheSupported 22:luidDeviceNodeMask 23:major 24:managedMemory 25:maxBlocksPerMultiProcessor
26:maxThreadsDim.0 27:maxThreadsDim.1 28:maxThreadsDim.2 29:maxGridSize.0 30:maxGridSize.1 31:maxGridSize.2
32:maxSurface1D 39:maxTexture1D 41:maxTexture1DLinear 42:maxTexture1DMipmap 43:maxTexture2D.0 44:maxTexture2D.1
49:maxTexture3D.0 50:maxTexture3D.1 51:maxTexture3D.2 53:maxTextureCubemap 56:maxThreadsPerBlock
57:maxThreadsPerMultiProcessor 58:memPitch 59:memoryBusWidth 60:memoryClockRate 61:minor 62:multiGpuBoardGroupID
63:multiProcessorCount 65:pageableMemoryAccess 66:pageableMemoryAccessUsesHostPageTables 67:pciBusID 68:pciDeviceID
69:pciDomainID 70:persistingL2CacheMaxSize 71:regsPerBlock 72:regsPerMultiprocessor 73:reservedSharedMemPerBlock
74:sharedMemPerBlock 75:sharedMemPerBlockOptin 76:sharedMemPerMultiprocessor 78:streamPrioritiesSupported
79:surfaceAlignment 81:textureAlignment 82:texturePitchAlignment 83:totalConstMem 84:totalGlobalMem
85:unifiedAddressing 87:warpSize 88:memoryPoolsSupported 89:virtualMemoryManagement 90:hostRegisterSupported
91:memoryPoolSupportedHandleTypes 10000:clockInstructionRate 10002:maxSharedMemoryPerMultiProcessor
10005:hdpMemFlushCntl 10006:hdpRegFlushCntl 10007:unmatched.0 10008:unmatched.1 10009:unmatched.2 10010:unmatched.3
10011:isLargeBar 10012:asicRevision 10013:streamWaitValue 10014:imageSupport 10015:multiProcessorCount
10016:fineGrainSupport 10017:wallClockRate 10018:xccs 10019:availableVgprs 10020:pciChipId
"""


def properties(
    target: Target, number: int, memory_bytes: int = MEMORY_BYTES
) -> dict[str, int | bytes | tuple[int, ...]]:
    """Values by HIP's names for them; ``number`` is the device's among all."""
    # a tool's worker asks for names alone, and has no emulator
    from luthier_py.emulator.native.clocks import CLOCK_KHZ, WALL_CLOCK_KHZ
    from luthier_py.emulator.waves.residency import COMPUTE_UNITS

    wave = target.wave_sizes[0]
    registers = target.wave_registers(wave).per_simd * target.simds * wave
    digits = target.name.removeprefix("gfx")
    return {
        **dict.fromkeys(_PRESENT, 1),
        "name": device_name(target).encode(),
        "gcnArchName": str(architecture(target)).encode(),
        "uuid": device_uuid(number).encode(),
        "pciBusID": device_bus(number),
        "totalGlobalMem": memory_bytes,
        "sharedMemPerBlock": target.lds_bytes,
        "sharedMemPerMultiprocessor": target.lds_bytes,
        "maxSharedMemoryPerMultiProcessor": target.lds_bytes,
        "sharedMemPerBlockOptin": target.lds_bytes,
        "regsPerBlock": registers,
        "regsPerMultiprocessor": registers,
        "warpSize": wave,
        "maxThreadsPerBlock": MAX_WORKITEMS,
        "maxThreadsDim": (MAX_WORKITEMS,) * 3,
        "maxGridSize": (_LARGEST, 65536, 65536),
        "clockRate": CLOCK_KHZ,
        "memoryClockRate": CLOCK_KHZ,
        "memoryBusWidth": 64,
        "totalConstMem": _LARGEST,
        "major": int(digits[:-2]),
        "minor": int(digits[-2], 16),
        "multiProcessorCount": COMPUTE_UNITS,
        "l2CacheSize": _L2_BYTES,
        "persistingL2CacheMaxSize": _L2_BYTES,
        "clockInstructionRate": CLOCK_KHZ,
        "wallClockRate": WALL_CLOCK_KHZ,
        "maxThreadsPerMultiProcessor": target.simds * target.max_waves_per_simd * wave,
        "maxBlocksPerMultiProcessor": target.simds * target.max_waves_per_simd,
        "memPitch": _LARGEST,
        "textureAlignment": 256,
        "texturePitchAlignment": 256,
        "surfaceAlignment": 256,
        "availableVgprs": target.vgpr_total_limit,
        "arch": sum(1 << bit for bit, name in enumerate(_ARCHITECTURE) if name != "-"),
    }


def device_bus(number: int) -> int:
    """Each device is on a PCI bus of its own; a machine has bridges before the first."""
    return 3 + number


def device_uuid(number: int) -> str:
    """Sixteen characters, as ROCr has them behind "GPU-"."""
    return "LUTHIER-EMULATO" + chr(ord("R") + number)


def device_name(target: Target) -> str:
    """The device's name in hipDeviceProp_t and in /sys."""
    return f"Luthier-py emulator ({target.name})"


def architecture(target: Target) -> TargetId:
    """The target with the settings of this device: SRAM-ECC as on every card that has it, XNACK as ROCm's own variable
    has it (HSA_XNACK=1 turns it on)."""
    xnack = Setting.ON if os.environ.get("HSA_XNACK") == "1" else Setting.OFF
    return TargetId(
        target,
        Setting.ON if target.sramecc else Setting.UNSUPPORTED,
        xnack if target.xnack else Setting.UNSUPPORTED,
    )


def pack_fields(layout: str, values: dict[str, int | bytes | tuple[int, ...]], padded: bool = True) -> bytes:
    """A C structure: every field at its natural alignment, its size a multiple of 8 if ``padded``."""
    data = bytearray()
    for name, count_text, kind in re.findall(r"(\w+):(\d*)([ciq])", layout):
        count, size = int(count_text or 1), _SIZES[kind]
        data += bytes(-len(data) % size)
        value = values.get(name, 0)
        if kind == "c":
            data += (value if isinstance(value, bytes) else b"")[:count].ljust(count, b"\0")
        else:
            numbers = value if isinstance(value, tuple) else (int(value or 0),) * min(count, 1)
            data += struct.pack(f"<{count}{kind}", *(*numbers, *(0,) * (count - len(numbers))))
    return bytes(data + bytes(-len(data) % 8 if padded else 0))


def offset(layout: str, name: str) -> int:
    """Where a field is."""
    before, found, _ = f" {layout} ".replace("\n", " ").partition(f" {name}:")
    assert found, name
    return len(pack_fields(before + f" {name}:c", {}, padded=False)) - 1


def attributes(values: dict[str, int | bytes | tuple[int, ...]]) -> list[tuple[int, int]]:
    """(number, value); what does not fit an int is cut to the largest."""
    rows = []
    for number, name, index in re.findall(r"(\d+):(\w+)\.?(\d?)", ATTRIBUTES):
        value = values.get(name, 0)
        if isinstance(value, tuple):
            value = value[int(index)]
        rows.append((int(number), min(int(value), _LARGEST)))
    return rows


def target_name(device: bytes, form: Form) -> str:
    """The target ID in what a program's side says of a device."""
    if form is Form.ISA:  # "amdgcn-amd-amdhsa--" and the target ID (AMDGPUUsage, "Target ID")
        return _text(device).rpartition("--")[2]
    start = offset(LAYOUT_R0600 if form is Form.R0600 else LAYOUT_R0000, "gcnArchName")
    return _text(device[start : start + 256])


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode("ascii", "replace")
