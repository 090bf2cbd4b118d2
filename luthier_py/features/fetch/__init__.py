"""Releases of ROCm."""
