"""Models: what grb asks of one, and our own on the sparse kernel."""
