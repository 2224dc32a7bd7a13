"""How far a model sees: read from its stages, and checked by running them."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as _modules

from grb.certificate.result import NotCertifiable
from grb.graph import CSR, Adjacency, Graph, GraphEdit, Pattern, dense
from grb.model.base import GraphModel, Mix, Pool, Propagate, Rows, Stage, State, evaluating, prepare, run_stages
from grb.model.wrapped import Wrapper

# of the largest logit: what different orders of summation explain
ROUNDING = 1e-4
# nodes of a graph that are enough to see whether steps are row-wise
ENOUGH = 2000
# what every module has, and values that compute nothing
_INTERNAL = frozenset(vars(nn.Module()))
_PLAIN = (
    type(None),
    bool,
    int,
    float,
    str,
    Tensor,
    nn.Parameter,
    torch.Generator,
    torch.dtype,
    torch.device,
    np.ndarray,
)


def check_own_code(model: nn.Module) -> None:
    """Refuse a model with code of others anywhere: classes, also those that say they are ours, hooks, replaced methods.

    Such code may remember one question for the next, or look at what its stages do not say. So may what a module keeps beside
    its parts, in a plain list for instance, which evaluation mode does not reach either.
    """
    name = title_of(model)
    if _modules._global_forward_hooks or _modules._global_forward_pre_hooks:
        raise NotCertifiable(f"'{name}' runs under a hook on all modules, which nobody has verified; remove it")
    for part in model.modules():
        kind = type(part)
        if not f"{kind.__module__}.".startswith(("grb.", "torch.nn.")) or _found(kind) is not kind:
            raise NotCertifiable(f"'{name}' has code of others ({kind.__name__}), whose stages nobody has verified")
        if part._forward_hooks or part._forward_pre_hooks:
            raise NotCertifiable(f"'{name}' has a hook on its {kind.__name__}, which nobody has verified; remove it")
        replaced = [each for each in vars(part) if callable(getattr(kind, each, None))]
        if replaced:
            raise NotCertifiable(
                f"'{name}' has a {kind.__name__} with another {replaced[0]} than its class, which nobody has verified"
            )
        own = {key: value for key, value in vars(part).items() if key not in _INTERNAL}
        for key, value in {**own, "weights": [*part._parameters.values(), *part._buffers.values()]}.items():
            if strange := _strange(value):
                raise NotCertifiable(
                    f"'{name}' keeps a {strange} in the {key} of its {kind.__name__}, which is no part of it and which nobody "
                    "has verified"
                )


def _strange(value: Any) -> str:
    """The class of what is no plain value, no tensor and no value of ours, in lists and the like too; empty if all are."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, np.generic):
        return ""
    if kind in (list, tuple, set, frozenset, torch.Size):
        return next(filter(None, map(_strange, value)), "")
    if kind in (dict, OrderedDict, MappingProxyType):
        return _strange([*value.keys(), *value.values()])
    ours = kind.__module__.startswith("grb.") and _found(kind) is kind and not isinstance(value, nn.Module)
    return _strange(getattr(value, "__dict__", {})) if ours else kind.__name__


def _found(kind: type) -> Any:
    """What is really where a class says that it is."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found


def not_wrapped(model: nn.Module, what: str) -> GraphModel:
    """The model, which ``what`` can go around; any other is refused."""
    if isinstance(model, Wrapper):
        raise NotCertifiable(f"'{title_of(model)}' has certificates of its own; {what} goes around a plain model")
    if not isinstance(model, GraphModel):
        raise NotCertifiable(f"{what} goes around grb's own models; this one is of others")
    return model


def local_stages(model: nn.Module) -> list[Stage]:
    """The stages of a model of which every step is row-wise or along edges; any other model is refused."""
    name = title_of(model)
    check_own_code(model)
    for part in model.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and not part.track_running_stats:
            raise NotCertifiable(f"'{name}' normalises over all rows of a graph, so that every node sees every other")
        if getattr(part, "joins_all_nodes", False):
            raise NotCertifiable(f"'{name}' has attention over all nodes, in which every node sees every other")
    stages = getattr(model, "stages", lambda: None)()
    if stages is None:
        raise NotCertifiable(f"'{name}' does not say by stages which rows each step sees, so nothing follows for it")
    if any(isinstance(stage, Pool) or not isinstance(stage, Rows | Propagate | Mix) for stage in stages):
        raise NotCertifiable(f"'{name}' pools over all rows, so that every node sees every other")
    return list(stages)


def check_stages(model: nn.Module, graph: Graph, op: Any) -> None:
    """Refuse a model whose stages are not its forward pass, or whose row-wise steps see other rows."""
    stages, x = local_stages(model), graph.x
    if not isinstance(x, Tensor):
        raise NotCertifiable("the features are sparse; stages are verified on dense ones")
    with evaluating(model):
        logits = model(x, op)
        found = run_stages(stages, x, op)
        allowed = ROUNDING * logits.abs().amax(1, keepdim=True).clamp_min(1e-6)
        if not bool(((logits - found).abs() <= allowed).all()):
            raise NotCertifiable(f"the stages of '{title_of(model)}' are not its forward pass")
        _check_rows(model, stages, x, op)


def _same_rows(stage: Rows, state: State, after: State, some: Tensor) -> bool:
    """Whether a row-wise step makes of some rows what it made of them among all others."""
    alone = stage.apply(tuple(values[some] for values in state))
    for whole, own in zip(after, alone, strict=True):
        # relative to the step's own size: what is pooled over many rows may be small, and made large again
        little = 1e-5 * float(whole.abs().max()) if whole.numel() else 0.0
        if whole.shape[0] != len(state[0]) or not torch.allclose(whole[some], own, rtol=1e-3, atol=little):
            return False
    return True


def _check_rows(model: nn.Module, stages: Sequence[Stage], x: Tensor, op: Any) -> None:
    ops = op if isinstance(op, Sequence) else [op]
    # disjoint, so that a row which decides for all is missing in two of them
    parts = [torch.arange(first, len(x), 3) for first in range(min(3, len(x)))]
    state: State = (x,)
    for stage in stages:
        if isinstance(stage, Rows):
            after = stage.apply(state)
            if not all(_same_rows(stage, state, after, some) for some in parts):
                raise NotCertifiable(f"a row-wise step of '{title_of(model)}' sees other rows than its own")
            state = after
        elif isinstance(stage, Mix):
            state = stage.apply(ops[stage.op], state, state)
        else:
            moved = ops[stage.op] @ state[stage.slot]
            state = (*state[: stage.slot], moved, *state[stage.slot + 1 :])


def check_local(model: nn.Module, graph: Graph) -> None:
    """Refuse a model of which a step is not what it says: row-wise, or along edges; tried out on a part of a graph.

    Args:
        model: The model.
        graph: A graph, of which the first nodes are looked at.
    """
    part = graph.subgraph(torch.arange(min(graph.n, ENOUGH)))
    x = dense(part.x)
    part = Graph(part.adj, x)
    check_along_edges(model)
    check_stages(model, part, prepare(model, part.adj))
    # a node without edges is nobody's business, whatever its features
    empty, few = torch.empty(2, 0, dtype=torch.int64), min(part.n, 8)
    low, high = x.min(0).values, x.max(0).values
    rows = torch.stack([low - 10 * (high - low) - 1, high + 10 * (high - low) + 1]).repeat(few, 1)
    with evaluating(model):
        clean, alone, beside = (
            model(each.x, prepare(model, each.adj))[: part.n]
            for each in (part, *(part.apply(GraphEdit(part.n, empty, empty, new)) for new in (0 * rows, rows)))
        )
    if not bool(((alone - clean).abs() <= ROUNDING / 2 * clean.abs().amax(1, keepdim=True)).all()):
        raise NotCertifiable(f"the logits of '{title_of(model)}' depend on the number of nodes of the graph")
    if not torch.equal(alone, beside):
        raise NotCertifiable(
            f"'{title_of(model)}' pools over all rows: a node without edges moved the logits of "
            f"{int((alone != beside).any(1).sum())} others"
        )


def operators(model: nn.Module, op: Any) -> list[CSR]:
    """The operators that a model's stages use; anything but sparse matrices is refused."""
    ops = op if isinstance(op, Sequence) else [op]
    used = sorted({stage.op for stage in local_stages(model) if not isinstance(stage, Rows)})
    if not all(isinstance(ops[number], CSR) for number in used):
        raise NotCertifiable(f"'{title_of(model)}' works on dense or low-rank operators, in which all nodes meet")
    return [ops[number] for number in used]


def check_along_edges(model: nn.Module) -> None:
    """Refuse a model whose operators join nodes without an edge: low-rank ones, and powers; tried out on a path."""
    for op in operators(model, prepare(model, _path(6))):
        if bool(((op.pattern.row_ids.long() - op.pattern.indices.long()).abs() > 1).any()):
            raise NotCertifiable(f"'{title_of(model)}' has an operator that joins nodes without an edge between them")


def reach_of(model: nn.Module) -> int:
    """Hops over which an edge of a graph can change a prediction.

    As many as there are steps along edges, and one more where weights depend on the sender's degree (GCN), which is tried out
    on a path of three nodes with and without a fourth.
    """
    steps = sum(not isinstance(stage, Rows) for stage in local_stages(model))
    if not steps:
        return 0
    check_along_edges(model)
    short, long = (operators(model, prepare(model, _path(n))) for n in (3, 4))
    for a, b in zip(short, long, strict=True):
        if not all(torch.equal(left, right) for left, right in zip(_row(a, 1), _row(b, 1), strict=True)):
            return steps + 1
    return steps


def messages_of(model: nn.Module) -> int:
    """Number of steps along edges."""
    return sum(not isinstance(stage, Rows) for stage in local_stages(model))


def _row(op: CSR, number: int) -> tuple[Tensor, Tensor]:
    row = op.rows(torch.tensor([number]))
    values = torch.ones(row.pattern.entries) if row.values is None else row.values
    return row.pattern.indices, values


def _path(n: int) -> Adjacency:
    ends = [[v for v in (u - 1, u + 1) if 0 <= v < n] for u in range(n)]
    indptr = torch.tensor([0, *torch.tensor([len(own) for own in ends]).cumsum(0).tolist()], dtype=torch.int32)
    indices = torch.tensor([v for own in ends for v in own], dtype=torch.int32)
    return Adjacency(Pattern(indptr, indices, n, symmetric=True))


def lead_exceeds_rounding(logits: Tensor) -> Tensor:
    """Whether the largest logit leads by more than rounding explains, [n]."""
    best = logits.topk(2, 1).values
    return best[:, 0] - best[:, 1] > ROUNDING * logits.abs().amax(1)


def title_of(model: nn.Module) -> str:
    """A model's name for sentences and tables."""
    return str(getattr(model, "title", None) or getattr(model, "name", type(model).__name__))
