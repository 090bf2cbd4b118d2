"""Studies; `plan` says what one runs, and runs it. Each run's process imports this package, so it loads nothing."""
