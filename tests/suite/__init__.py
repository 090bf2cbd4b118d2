"""How the suite runs: tiers, what a change reaches, choice, order, what a nightly run keeps (docs/testing.md)."""
