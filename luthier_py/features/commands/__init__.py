"""What all commands share: options, parameters read from type hints, the console, exit codes."""
