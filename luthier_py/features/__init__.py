"""Pipeline, device and tools together: what the command line and scripts do in one call, each in a file of its own."""
