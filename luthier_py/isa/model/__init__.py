"""The targets: one row each, their registers, and what is a property of hardware and not of an instruction."""
