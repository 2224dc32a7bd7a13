"""Training: one loop, checkpoints without pickle, and the paper's Trainer."""

from grb import _lazy
from grb.trainer.checkpoint import export_model, load_model, load_weights, save_model, save_weights
from grb.trainer.loop import Epoch, Fit, fit
from grb.trainer.trainer import Trainer

__all__ = ["Epoch", "Fit", "Trainer", "export_model", "fit", "load_model", "load_weights", "save_model", "save_weights"]
# of the papers' era
__getattr__ = _lazy.attach(__name__, dict.fromkeys(("AutoTrainer", "GraphTrainer"), "grb.compat.trainers"))[0]
