"""Pipeline, device and tools together: what the command line and scripts do in one call, a package for each
feature."""
