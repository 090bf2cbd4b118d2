"""Injectors that are wrong, by the decision that they get wrong; and what becomes of their copies."""
