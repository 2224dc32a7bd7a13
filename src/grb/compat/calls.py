"""Calls that our classes and methods do not take as they are, looked up by THUDM/grb's signature and put into ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grb.compat import attacks, datasets, evaluation, models, trainers
from grb.compat.arguments import bind

_STOP = "early_stop early_stop_patience early_stop_epsilon"
_INJECTED = f"n_inject_max n_edge_max feat_lim_min feat_lim_max loss eval_metric {_STOP} verbose device"
_CHANGED = "n_node_mod n_edge_mod feat_lim_min feat_lim_max"
_WIDTHS = "in_features out_features hidden_features n_layers"


@dataclass(frozen=True)
class Signature:
    """THUDM/grb's positional order of a constructor, and the function that makes ours of it."""

    order: str
    make: Callable[[Any, dict[str, Any]], Any]


def _model(cls: Any, given: dict[str, Any]) -> Any:
    made, arguments = models.model_arguments(getattr(cls, "paper_base", cls), given)
    return type.__call__(made, **arguments)


def _injection(cls: Any, given: dict[str, Any]) -> Any:
    return type.__call__(cls, **attacks.injection_arguments(cls, given))


def _modification(cls: Any, given: dict[str, Any]) -> Any:
    arguments = attacks.modification_arguments(cls, given)
    return attacks.with_features(cls, arguments) if cls.__name__ == "PRBCD" else type.__call__(cls, **arguments)


def _dataset(cls: Any, given: dict[str, Any]) -> Any:
    return type.__call__(cls, **datasets.dataset_arguments(cls.__name__, given))


def _trainer(cls: Any, given: dict[str, Any]) -> Any:
    if given.get("adj_norm_func") is None:
        given.pop("adj_norm_func", None)
    else:
        cls = trainers.NormTrainer
    return type.__call__(cls, **trainers.trainer_arguments("Trainer", given))


def _evaluator(cls: Any, given: dict[str, Any]) -> Any:
    if cls.__name__ == "DefenseEvaluator":
        given.pop("build_model", None)
        given.pop("device", None)
        return type.__call__(cls, **given)
    return evaluation.AttackEvaluator(**given)


SIGNATURES: dict[str, Signature] = {
    "grb.model.torch.gcn.GCN": Signature(
        f"{_WIDTHS} activation layer_norm residual feat_norm adj_norm_func dropout", _model
    ),
    "grb.model.torch.appnp.APPNP": Signature(
        f"{_WIDTHS} layer_norm activation edge_drop alpha k feat_norm adj_norm_func dropout", _model
    ),
    "grb.model.torch.gin.GIN": Signature(
        f"{_WIDTHS} n_mlp_layers activation layer_norm batch_norm eps feat_norm adj_norm_func dropout", _model
    ),
    "grb.model.torch.graphsage.GraphSAGE": Signature(
        f"{_WIDTHS} activation layer_norm feat_norm adj_norm_func mu dropout", _model
    ),
    "grb.model.torch.mlp.MLP": Signature(
        f"{_WIDTHS} activation feat_norm adj_norm_func batch_norm layer_norm dropout", _model
    ),
    "grb.model.torch.sgcn.SGCN": Signature(
        f"{_WIDTHS} activation feat_norm adj_norm_func layer_norm batch_norm k dropout", _model
    ),
    "grb.model.torch.tagcn.TAGCN": Signature(
        f"{_WIDTHS} k activation feat_norm adj_norm_func layer_norm batch_norm dropout", _model
    ),
    "grb.model.torch.gat.GAT": Signature(
        f"{_WIDTHS} n_heads activation layer_norm feat_norm adj_norm_func feat_dropout attn_dropout residual dropout",
        _model,
    ),
    "grb.defense.robustgcn.RobustGCN": Signature(f"{_WIDTHS} feat_norm adj_norm_func dropout", _model),
    "grb.defense.gcnsvd.GCNSVD": Signature(
        f"{_WIDTHS} activation layer_norm feat_norm adj_norm_func residual dropout k", _model
    ),
    "grb.defense.gnnguard.GCNGuard": Signature(
        f"{_WIDTHS} activation layer_norm dropout feat_norm adj_norm_func drop attention", _model
    ),
    "grb.defense.gnnguard.GATGuard": Signature(
        f"{_WIDTHS} n_heads activation layer_norm feat_norm adj_norm_func drop attention dropout", _model
    ),
    "grb.defense.grand.GRAND": Signature(
        f"{_WIDTHS} s k temp lam feat_norm adj_norm_func node_dropout input_dropout hidden_dropout", _model
    ),
    "grb.attack.injection.fgsm.FGSM": Signature(f"epsilon n_epoch {_INJECTED}", _injection),
    "grb.attack.injection.pgd.PGD": Signature(f"epsilon n_epoch {_INJECTED}", _injection),
    "grb.attack.injection.random.RND": Signature(
        "n_inject_max n_edge_max feat_lim_min feat_lim_max loss eval_metric device verbose", _injection
    ),
    "grb.attack.injection.speit.SPEIT": Signature(
        f"lr n_epoch {_INJECTED.replace('eval_metric', 'eval_metric inject_mode')}", _injection
    ),
    "grb.attack.injection.tdgia.TDGIA": Signature(
        f"lr n_epoch {_INJECTED.replace('eval_metric', 'eval_metric inject_mode sequential_step opt')}", _injection
    ),
    "grb.attack.modification.dice.DICE": Signature(
        "n_edge_mod ratio_delete allow_isolate device verbose", _modification
    ),
    "grb.attack.modification.fga.FGA": Signature("n_edge_mod loss allow_isolate device verbose", _modification),
    "grb.attack.modification.flip.FLIP": Signature(
        "n_edge_mod flip_type mode allow_isolate device verbose", _modification
    ),
    "grb.attack.modification.nea.NEA": Signature("n_edge_mod allow_isolate device verbose", _modification),
    "grb.attack.modification.stack.STACK": Signature("n_edge_mod allow_isolate device verbose", _modification),
    "grb.attack.modification.random.RND": Signature("n_edge_mod allow_isolate device verbose", _modification),
    "grb.attack.modification.pgd.PGD": Signature(
        f"epsilon n_epoch {_CHANGED} allow_isolate loss eval_metric {_STOP} device verbose", _modification
    ),
    "grb.attack.modification.prbcd.PRBCD": Signature(
        f"epsilon n_epoch {_CHANGED} n_epoch_resampling allow_isolate loss eval_metric {_STOP} max_final_samples eps "
        "search_space_size make_undirected lr_factor device verbose",
        _modification,
    ),
    "grb.dataset.dataset.Dataset": Signature("name data_dir mode feat_norm verbose custom", _dataset),
    "grb.dataset.load.CustomDataset": Signature(
        "adj features labels train_mask val_mask test_mask name data_dir mode feat_norm save verbose seed", _dataset
    ),
    "grb.trainer.trainer.Trainer": Signature(
        f"dataset optimizer loss feat_norm lr_scheduler lr_patience lr_factor lr_min {_STOP} eval_metric device",
        _trainer,
    ),
    "grb.evaluator.evaluator.AttackEvaluator": Signature("dataset build_model device", _evaluator),
    "grb.evaluator.evaluator.DefenseEvaluator": Signature("dataset build_model device", _evaluator),
}


def _train(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    order = "self model n_epoch save_dir save_name eval_every if_save save_after train_mode return_scores verbose"
    given = bind(order, args, kwargs)
    if given is None or "model" not in given or "n_epoch" not in given:
        raise TypeError("Trainer.train() needs model and n_epoch")
    return trainers.train(given.pop("self"), given)


METHODS: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], Any]] = {
    "grb.attack.injection.base.Limits.attack": lambda args, kwargs: attacks.attack_injection(args[0], args[1:], kwargs),
    "grb.attack.modification.base.Limits.attack": lambda args, kwargs: attacks.attack_modification(
        args[0], args[1:], kwargs
    ),
    "grb.trainer.trainer.Trainer.train": _train,
}


def construct(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An instance of ours from a call in THUDM/grb's spelling; Python's own refusal where that has no such call either."""
    known = SIGNATURES.get(f"{cls.__module__}.{cls.__qualname__}")
    given = None if known is None else bind(known.order, args, kwargs)
    if known is None or given is None:
        return type.__call__(cls, *args, **kwargs)
    return known.make(cls, given)


def call(method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a method of ours from a call in THUDM/grb's spelling."""
    known = METHODS.get(f"{method.__module__}.{method.__qualname__}")
    return method(*args, **kwargs) if known is None else known(args, kwargs)
