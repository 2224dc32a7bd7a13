"""Models: what grb asks of one, and our own on the sparse kernel."""

from grb import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, {name: f"grb.model.{name}" for name in ("cogdl", "dgl", "torch")})
