"""Results computed from a normalised trace; nothing here draws."""
