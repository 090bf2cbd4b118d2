"""The cycle model: what hardware has of each kind, how long instructions hold it, and when they issue."""
