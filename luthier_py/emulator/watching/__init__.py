"""Native code that watches the waves of checked and recorded launches, in C."""
