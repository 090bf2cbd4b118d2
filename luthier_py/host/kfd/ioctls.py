"""The ioctls of /dev/kfd: numbers, names and arguments.

Source: linux/kfd_ioctl.h (1.15), and the header that ROCm 5.2's driver and thunk share for numbers from 0x80 on.
"""

from __future__ import annotations

from luthier_py.host.kfd.layout import StructLayout

KFD, DRM = ord("K"), ord("d")
VERSION = 1, 15
NUMBERS = {*range(0x01, 0x27), *range(0x80, 0x8A)}  # that drivers know, with a function or without one
ENOTSUPP = 524  # of the kernel's own errors, which programs see for a type of queue that there is not
MIN_RING_BYTES = 1024  # KFD_MIN_QUEUE_RING_SIZE
DEBUG_VERSION = 10, 0  # of ROCm 5.2's DBG_TRAP
DEBUG_GET_VERSION, DEBUG_RUNTIME = 7, 13  # its operations

QUEUE_COMPUTE, QUEUE_SDMA, QUEUE_AQL, QUEUE_SDMA_XGMI = range(4)
VRAM, GTT, USERPTR, DOORBELL, MMIO = (1 << bit for bit in range(5))
EVENT_SIGNAL, EVENT_HW_EXCEPTION, EVENT_MEMORY = 0, 3, 8
HANG = 0  # KFD_HW_EXCEPTION_GPU_HANG

APERTURES = StructLayout("lds_base:Q lds_limit:Q scratch_base:Q scratch_limit:Q gpuvm_base:Q gpuvm_limit:Q gpu:I pad:I")
MEMORY_EXCEPTION = StructLayout("not_present:I read_only:I no_execute:I imprecise:I address:Q gpu:I kind:I")
HW_EXCEPTION = StructLayout("reset:I cause:I lost:I gpu:I")

IOCTLS = {
    number: (name, StructLayout(text))
    for number, name, text in (
        (0x01, "get_version", "major:I minor:I"),
        (0x02, "create_queue", "ring:Q write_pointer:Q read_pointer:Q doorbell:Q ring_bytes:I gpu:I type:I "
                               "percentage:I priority:I queue:I eop:Q eop_bytes:Q save_area:Q save_area_bytes:I "
                               "control_stack_bytes:I"),
        (0x03, "destroy_queue", "queue:I pad:I"),
        (0x04, "set_memory_policy", "base:Q bytes:Q gpu:I default:I alternate:I pad:I"),
        (0x05, "get_clock_counters", "gpu_clock:Q cpu_clock:Q system_clock:Q frequency:Q gpu:I pad:I"),
        (0x07, "update_queue", "ring:Q queue:I ring_bytes:I percentage:I priority:I"),
        (0x0F, "set_cu_mask", "queue:I count:I mask:Q"),
        (0x11, "set_scratch_backing_va", "address:Q gpu:I pad:I"),
        (0x12, "get_tile_config", "tiles:Q macro_tiles:Q tile_count:I macro_tile_count:I gpu:I address_config:I "
                                  "banks:I ranks:I"),
        (0x13, "set_trap_handler", "handler:Q buffer:Q gpu:I pad:I"),
        (0x14, "get_process_apertures_new", "rows:Q count:I pad:I"),
        (0x15, "acquire_vm", "drm:I gpu:I"),
        (0x16, "alloc_memory_of_gpu", "address:Q bytes:Q handle:Q offset:Q gpu:I flags:I"),
        (0x17, "free_memory_of_gpu", "handle:Q"),
        (0x18, "map_memory_to_gpu", "handle:Q gpus:Q count:I done:I"),
        (0x19, "unmap_memory_from_gpu", "handle:Q gpus:Q count:I done:I"),
        (0x1E, "alloc_queue_gws", "queue:I count:I first:I pad:I"),
        (0x21, "set_xnack_mode", "enabled:i"),
        (0x23, "get_available_memory", "available:Q gpu:I pad:I"),
        (0x25, "runtime_enable", "list:Q mode:I capabilities:I"),
        (0x80, "ipc_import_handle", "handle:Q address:Q offset:Q worker:I place:Q pages:I gpu:I flags:I"),
        (0x81, "ipc_export_handle", "handle:Q worker:I place:Q pages:I gpu:I flags:I"),
        (0x82, "debug_trap", "mask:Q list:Q process:I operation:I first:I second:I third:I fourth:I"),
    )
}  # fmt: skip
