from grb.automl.search import AutoTrainer as AutoTrainer
from grb.trainer.trainer import Trainer as Trainer
