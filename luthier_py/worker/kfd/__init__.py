"""The emulator as the kernel driver's device: what stands behind /dev/kfd for ROCm's own libraries."""
