"""Releases of ROCm that Debian has, fetched into a folder of the user's and not installed."""
