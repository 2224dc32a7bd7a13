from grb.trainer.trainer import Trainer as Trainer
