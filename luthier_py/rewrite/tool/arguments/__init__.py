"""What a call of a hook is given: constants, registers, addresses, values of the launch."""
