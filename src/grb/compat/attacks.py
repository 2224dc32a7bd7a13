"""Attacks under their arguments of the papers' era, and ``attack()`` as it was called then."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.attack.base import AttackContext, context_from_arrays, run_attack
from grb.attack.losses import cross_entropy
from grb.attack.modification.pgd import PGD
from grb.compat.arguments import bind, is_cross_entropy, refuse_unless, say_once, take_patience, without_effect
from grb.compat.metrics import eval_acc
from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import Graph, convert
from grb.model.base import GraphModel

WIRINGS = {"random": "direct", "random-inter": "inter", "multi-layer": "layers"}
WITHOUT_MODEL = ("RND", "DICE", "FLIP", "NEA", "STACK")


def injection_arguments(cls: type, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of our injection attacks."""
    owner = cls.__name__
    advice = "it raises the cross-entropy; ComposedInjection and APGD take other losses"
    refuse_unless(owner, given, "loss", is_cross_entropy, advice)
    _common(given)
    patience = take_patience(given)
    if owner != "RND":
        given.setdefault("patience", patience)
    if owner == "SPEIT" and "inject_mode" in given:
        mode = given.pop("inject_mode")
        if mode not in WIRINGS:
            raise DataError(f"inject_mode is {mode!r}, but one of {', '.join(WIRINGS)} is needed; it is `wiring` now")
        given["wiring"] = WIRINGS[mode]
    return _numbers(given)


def modification_arguments(cls: type, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of our modification attacks."""
    owner = cls.__name__
    _common(given)
    patience = take_patience(given)
    if owner == "PGD":
        given.setdefault("patience", patience)
    if "loss" in given and (loss := _loss(owner, given.pop("loss"))) is not None:
        given["loss"] = loss
    if owner == "PRBCD":
        _prbcd(given)
    return _numbers(given)


def _prbcd(given: dict[str, Any]) -> None:
    without_effect("PRBCD", given, "eps", "weights are kept in [0, 1] exactly", quiet=[1e-7])
    refuse_unless("PRBCD", given, "make_undirected", bool, "every graph is undirected")
    if given.get("n_epoch_resampling", 0) is None:
        del given["n_epoch_resampling"]
    elif given.get("n_epoch_resampling", 0) > 1:
        given["n_epoch_resampling"] = given["n_epoch_resampling"] / given.get("n_epoch", 125)


def with_features(cls: Any, given: dict[str, Any]) -> Any:
    """PR-BCD on edges and, where ``n_node_mod`` asks for it, PGD on features behind it."""
    step = given.pop("epsilon", 0.01)
    edges = type.__call__(cls, **given)
    if not given.get("n_node_mod"):
        return edges
    limits = ("n_edge_mod", "n_node_mod", "feat_lim_min", "feat_lim_max", "allow_isolate")
    steps = given.get("n_epoch", given.get("steps", 125))
    return PGD(step_size=step, steps=steps, edges=edges, **{name: given[name] for name in limits if name in given})


def _common(given: dict[str, Any]) -> None:
    owner = "attacks"  # told once, not once per attack
    without_effect(owner, given, "verbose", "nothing is printed; run_attack(...).steps has the course", quiet=[False])
    without_effect(owner, given, "device", "an attack runs where the model and the features are", quiet=["cpu"])
    without_effect(
        owner,
        given,
        "eval_metric",
        "the step with the lowest accuracy is kept, the loss decides ties",
        quiet=[None, eval_acc],
    )


def _loss(owner: str, asked: Any) -> Any:
    if asked is functional.cross_entropy or asked is functional.nll_loss:
        return cross_entropy
    if asked is None or getattr(asked, "__name__", "") == "tanh_margin_loss":
        return None  # ours
    if not callable(asked):
        raise DataError(
            f"{owner} got the loss {asked!r:.60}, but a function of logits and labels is needed (grb.attack.losses)"
        )
    return asked


def _numbers(given: dict[str, Any]) -> dict[str, Any]:
    """Limits as plain numbers: ``features.min()`` is a tensor, a count may be one of numpy."""
    for name in ("feat_lim_min", "feat_lim_max"):
        if given.get(name) is not None:
            given[name] = float(given[name])
    for name in ("n_inject_max", "n_edge_max", "n_edge_mod", "n_node_mod"):
        if given.get(name) is not None:
            given[name] = int(given[name])
    return given


def attack_injection(attack: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``attack(model, adj, features, target_mask, feat_norm, adj_norm_func)`` of an injection attack."""
    order = "model adj features target_mask feat_norm adj_norm_func"
    if type(attack).__name__ == "RND":
        order = "model adj features target_mask adj_norm_func feat_norm"
    given = _given(attack, order, args, kwargs)
    mask = target_mask(given["target_mask"], given["adj"].shape[0])
    return attack.attack(given["model"], given["adj"], _features(given), mask, **_seed(given))


def attack_modification(attack: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``attack(adj, index_target[, labels])``, or with a model ``attack(model, adj, features, index_target)``.

    Returns:
        The attacked adjacency; with PGD and PR-BCD, which change features too, a pair with the features.
    """
    name = type(attack).__name__
    if name in WITHOUT_MODEL and "model" not in kwargs and "features" not in kwargs and len(args) < 4:
        return _without_model(attack, args, kwargs)
    given = _given(attack, "model adj features index_target feat_norm adj_norm_func", args, kwargs)
    targets = given.get("index_target", given.get("target_mask"))
    mask = target_mask(targets, given["adj"].shape[0])
    adj, features = attack.attack(given["model"], given["adj"], _features(given), mask, **_seed(given))
    return (adj, features) if name in ("PGD", "PRBCD") else adj


def _without_model(attack: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = bind("adj index_target labels", args, kwargs)
    if given is None or "adj" not in given or "index_target" not in given:
        raise TypeError(
            f"{type(attack).__name__}.attack() needs adj and index_target, or model, adj, features and target_mask"
        )
    name = type(attack).__name__
    if given.pop("saved", None) is not None:
        say_once(f"{name}.attack: saved has no effect, centralities are computed anew")
    adj = given["adj"]
    mask = target_mask(given["index_target"], adj.shape[0])
    context = context_from_arrays(None, adj, torch.zeros(adj.shape[0], 1), mask, attack.threat())
    if name == "DICE":
        context = _labelled(context, mask, given.get("labels"))
    edit = run_attack(attack, context, seed=int(given.get("seed", 0))).edit
    return convert.to_scipy(context.graph.apply(edit).adj)


def _labelled(context: AttackContext, mask: Tensor, labels: Any) -> AttackContext:
    """With the labels of all nodes but the targets, which no attacker knows."""
    if labels is None:
        raise DataError("DICE.attack needs labels: attack(adj, index_target, labels)")
    y = torch.as_tensor(np.asarray(labels)).long().clone()
    if bool((y[mask] >= 0).any()):
        say_once(
            "DICE.attack: labels of the targets are not used, an attacker does not know them; those of others are passed on"
        )
    y[mask] = -1
    graph, none = context.graph, torch.empty(0, dtype=torch.int64)
    view = View(
        Graph(graph.adj, graph.x, y),
        (~mask).nonzero().flatten(),
        none,
        context.targets,
        torch.arange(graph.n),
        0,
        inductive=False,
    )
    return AttackContext(view, context.threat)


def _given(attack: Any, order: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    owner = f"{type(attack).__name__}.attack"
    given = bind(order, args, kwargs)
    missing = [name for name in order.split()[:3] if given is None or name not in given]
    if given is None or missing or not {"target_mask", "index_target"} & given.keys():
        raise TypeError(f"{owner}() needs {', '.join(order.split()[:4])}")
    known = {*order.split(), "target_mask", "index_target", "labels", "seed"}
    if unknown := sorted(given.keys() - known):
        raise TypeError(f"{owner}() got an unexpected keyword argument '{unknown[0]}'")
    advice = "features are normalised once, by the dataset: Dataset(name, feat_norm='arctan')"
    refuse_unless(owner, given, "feat_norm", lambda value: value is None, advice)
    check_norm(owner, given["model"], given.pop("adj_norm_func", None))
    return given


def check_norm(owner: str, model: nn.Module | None, norm: Any) -> None:
    """Refuse a normalisation that is not the model's own: attacks go through what the model really does."""
    own = getattr(model, "adj_norm_func", None)
    if norm is None or model is None or norm is own:
        return
    if isinstance(model, GraphModel) or hasattr(model, "prepare") or hasattr(model, "adj_norm_func"):
        raise DataError(
            f"{owner} got adj_norm_func={getattr(norm, '__name__', norm)}, but the model normalises by "
            f"{getattr(own, '__name__', own)}; leave it out, or give the model another one"
        )


def target_mask(targets: Any, n: int) -> Tensor:
    """Targets as booleans, [n], from booleans or ids of any kind."""
    array = targets.detach().cpu().numpy() if isinstance(targets, Tensor) else np.asarray(targets)
    if array.dtype == bool:
        return torch.from_numpy(array.copy())
    if array.dtype.kind not in "iu" or array.ndim != 1 or (len(array) and (array.min() < 0 or array.max() >= n)):
        raise DataError(
            f"targets are {array.dtype} of shape {list(array.shape)}, but ids from 0 to {n - 1} or {n} booleans are needed"
        )
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.from_numpy(array.astype(np.int64))] = True
    return mask


def _features(given: dict[str, Any]) -> Tensor:
    return torch.as_tensor(given["features"], dtype=torch.float32).detach()


def _seed(given: dict[str, Any]) -> dict[str, int]:
    return {"seed": int(given["seed"])} if "seed" in given else {}
