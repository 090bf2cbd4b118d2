"""What kernels may cost."""
