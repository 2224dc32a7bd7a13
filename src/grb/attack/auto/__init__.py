"""The standard attack ensemble: a fixed, versioned race of attacks without parameters."""
