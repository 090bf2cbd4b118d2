"""Where native code, generated code and Python find what they share."""
