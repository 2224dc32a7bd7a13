from __future__ import annotations

from grb import _lazy

# it has no layer of DGL: ours is used, which needs none
__getattr__, __dir__ = _lazy.attach(__name__, {"GRAND": "grb.defense.grand"})
