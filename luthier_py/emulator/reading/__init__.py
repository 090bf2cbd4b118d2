"""GPU code as it lies in memory: which instructions a function has, and which registers matter in it."""
