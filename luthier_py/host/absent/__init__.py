"""Libraries that frameworks are linked with, and that a release of ROCm may not have."""

from luthier_py.host.absent.build import absent_libraries

__all__ = ["absent_libraries"]
