# %% `AutoTrainer(dataset, model_class, eval_metric, params_search, n_trials, n_jobs, seed, if_save, device)`
# differs: weights and Optuna are seeded; a trial is scored on what its training may see
from grb.dataset import Dataset
from grb.evaluator import metric
from grb.model.torch import GCN
from grb.trainer.trainer import AutoTrainer

dataset = Dataset(name="synth-tiny", mode="full", feat_norm="arctan")


def params_search(trial):
    model_params = {
        "hidden_features": trial.suggest_categorical("hidden_features", [4, 8]),
        "n_layers": trial.suggest_categorical("n_layers", [2, 3]),
        "dropout": trial.suggest_categorical("dropout", [0.5, 0.6]),
    }
    other_params = {
        "lr": trial.suggest_categorical("lr", [1e-2, 5e-2]),
        "n_epoch": 6,
        "early_stop": True,
        "early_stop_patience": 5,
        "train_mode": "inductive",
    }
    return model_params, other_params


autotrainer = AutoTrainer(
    dataset=dataset,
    model_class=GCN,
    eval_metric=metric.eval_acc,
    params_search=params_search,
    n_trials=2,
    n_jobs=1,
    seed=42,
    if_save=False,
    device="cpu",
)

# %% `best_score, best_params, best_score_list = AutoTrainer.run()`
best_score, best_params, best_score_list = autotrainer.run()
assert best_score == max(best_score_list) and set(best_params) == {"model_params", "other_params"}

# %% `AutoTrainer(n_jobs=2)`
AutoTrainer(
    dataset=dataset, model_class=GCN, eval_metric=metric.eval_acc, params_search=params_search, n_trials=1, n_jobs=2
)

# %% `AutoTrainer(..., <arguments of every training>)`
fixed = AutoTrainer(
    dataset=dataset,
    model_class=GCN,
    eval_metric=metric.eval_acc,
    params_search=params_search,
    n_trials=1,
    n_epoch=2,
    lr_scheduler=True,
)
assert len(fixed.run()[2]) == 2
