"""From a tool to a copy of the code object: the authors' interface, hook compilers, injection, the pipeline."""
