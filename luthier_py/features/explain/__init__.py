"""Why a copy is what it is."""
