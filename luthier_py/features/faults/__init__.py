"""Campaigns of faults; `campaign` runs them."""
