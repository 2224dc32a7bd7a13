"""Certificates: what no attack within a threat model can change."""
