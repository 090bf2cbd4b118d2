"""Code objects as bytes: read, and written again with a patch."""
