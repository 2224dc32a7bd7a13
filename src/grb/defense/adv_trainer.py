from grb import _lazy

__getattr__ = _lazy.attach(__name__, dict.fromkeys(("AdvTrainer", "EarlyStop"), "grb.compat.trainers"))[0]
