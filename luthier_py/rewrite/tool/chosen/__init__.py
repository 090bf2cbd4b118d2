"""Which launches, functions and instructions: filters, the user's selection, parts of a function that are counted."""
