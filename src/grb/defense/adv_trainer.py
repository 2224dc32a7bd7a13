from __future__ import annotations

from grb import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, dict.fromkeys(("AdvTrainer", "EarlyStop"), "grb.compat.trainers"))
