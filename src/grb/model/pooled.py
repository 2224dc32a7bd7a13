"""Models of whole graphs: any model of nodes, its rows pooled over every graph, and a perceptron behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from grb.catalogue import resolve
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Pattern, dense
from grb.model.base import GraphModel, Pool, Rows, Stage, State, hidden_sizes
from grb.model.layers import Dropout, Linear, relu_dropout
from grb.names import ModelName

Readout = Literal["mean", "sum"]
WIDTHS = (32, 32)
# one linear map of propagated features; several draws at once; weights of one graph's edges
UNPOOLED = ("sgc", "grand", "pro-gnn")


class Pooled(GraphModel):
    r"""A model of nodes as backbone, the rows of every graph pooled, and a perceptron as head.

    .. math:: p_g = \sum_{v \in g} \mathrm{relu}(\mathrm{backbone}(x D)_v), \qquad
              \text{logits}_g = W_2\, \mathrm{relu}(W_1 p_g + b_1) + b_2

    divided by the number of nodes for the readout ``mean``. :math:`D` divides the columns of the features by their
    deviation over the training graphs where that is above one, so that measured columns do not drown one-hot ones. The
    head is as wide as the last hidden layer, and so are the rows that the backbone puts out.

    Args:
        in_features: Width of the features.
        out_features: Classes.
        readout: ``sum``, which also distinguishes graphs of different size, or ``mean``.
        hidden_features: Hidden widths of the backbone, or one width together with ``n_layers``.
        generator: Draws the weights; torch's global one if not given.
        params: More arguments of the backbone, such as ``dropout``.

    References:
        Xu et al., *How Powerful are Graph Neural Networks?*, ICLR 2019, Eq. 4.2 (with the last layer alone).
    """

    base: ClassVar[str] = "gcn"
    pools: ClassVar[bool] = True

    def __init__(
        self,
        in_features: int,
        out_features: int,
        readout: Readout = "sum",
        hidden_features: Any = WIDTHS,
        n_layers: int | None = None,
        generator: torch.Generator | None = None,
        **params: Any,
    ) -> None:
        super().__init__()
        if readout not in get_args(Readout):
            raise DataError(f"readout is {readout!r}, but 'mean' or 'sum' is needed")
        hidden = hidden_sizes(hidden_features, n_layers)
        width = hidden[-1]
        self.backbone: GraphModel = resolve("model", self.base)(in_features, width, hidden_features=hidden, **params)
        self.params = {**self.backbone.params, "out_features": out_features, "readout": readout}
        self.readout: Readout = readout
        self.head = nn.ModuleList([Linear(width, width), Linear(width, out_features)])
        self.dropout = Dropout(float(self.backbone.params.get("dropout", 0.0)))
        self.register_buffer("scale", torch.ones(in_features))
        if generator is not None:
            self.reset_parameters(generator)

    scale: Tensor

    def measure(self, x: Tensor | CSR) -> None:
        """Take the deviations of the features from some rows, those of the training graphs, [n, d]."""
        rows = dense(x)
        if len(rows):
            self.scale.copy_(1 / rows.std(0, correction=0).clamp(min=1.0))

    def prepare(self, adj: Adjacency) -> Any:
        """The backbone's operator."""
        return self.backbone.prepare(adj)

    def forward(self, x: Tensor | CSR, op: Any, ptr: Tensor | None = None) -> Tensor:
        """Logits of every graph of a collection with the boundaries ``ptr``, [graphs, classes]; of the one graph without."""
        rows = torch.relu(self.backbone(dense(x) * self.scale, op))
        return self.headed(readout(rows, ptr, self.readout))

    def headed(self, pooled: Tensor) -> Tensor:
        """Logits of pooled rows, [graphs, classes]."""
        out: Tensor = self.head[1](relu_dropout(self.head[0](pooled), self.dropout))
        return out

    def penalty(self) -> Tensor | float:
        """The backbone's own addition to the training loss, if it has one."""
        inner: Callable[[], Tensor] | None = getattr(self.backbone, "penalty", None)
        return 0.0 if inner is None else inner()

    def node_stages(self) -> list[Stage] | None:
        """What happens to the rows of a graph before they are pooled; None if the backbone has no stages."""
        inner = self.backbone.stages()
        if inner is None:
            return None
        return [
            Rows(lambda state: (state[0] * self.scale,)),
            *inner,
            Rows(lambda state: (torch.relu(state[0]),)),
        ]


def readout(rows: Tensor, ptr: Tensor | None, kind: Readout) -> Tensor:
    """Sum or mean of the rows of every graph, [graphs, d] from [n, d]; an empty graph gets zeros.

    >>> readout(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 2, 3]), "mean").flatten().tolist()
    [2.0, 5.0]
    """
    if ptr is None:
        total = rows.sum(0, keepdim=True)
        return total if kind == "sum" else total / max(len(rows), 1)
    bounds = ptr.to(rows.device)
    columns = torch.arange(len(rows), dtype=torch.int32, device=rows.device)
    total = CSR(Pattern(bounds.int(), columns, len(rows)), None) @ rows
    return total if kind == "sum" else total / bounds.diff().clamp(min=1).to(rows.dtype).unsqueeze(1)


@cache
def pooled(base: str) -> type[Pooled]:
    """The class behind ``<base>-pool``, for any model of nodes in the catalogue.

    >>> pooled("gin").name, pooled("gin")(3, 2).readout
    ('gin-pool', 'sum')
    """
    inner = ModelName.parse(base)
    own, name = inner.architecture, str(replace(inner, pooled=True))
    if own in UNPOOLED:
        raise DataError(f"'{own}' has no rows of hidden features to pool; pool another model, for instance 'gin-pool'")
    return type("Pooled", (Pooled,), {"base": own, "name": name, "__module__": __name__})


class GraphLevel(nn.Module):
    """A model of whole graphs on one graph, as a model of its nodes: every node gets the logits of the graph.

    So whatever attacks the nodes of a graph attacks the graph: all its nodes are targets, and their mean loss is its loss.

    Args:
        model: Gives one row for one graph, as :class:`Pooled` does.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def prepare(self, adj: Adjacency) -> Any:
        """The model's own operator."""
        prepare: Any = self.model.prepare
        return prepare(adj)

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        """The logits of the graph for each of its nodes, [n, classes]."""
        logits: Tensor = self.model(x, op)
        if logits.dim() != 2 or len(logits) != 1:
            raise DataError(
                f"the model gives {list(logits.shape)} for one graph, but one row of logits is needed: it classifies nodes"
            )
        return logits.expand(x.shape[0], -1)

    def stages(self) -> list[Stage] | None:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        model = self.model
        before = model.node_stages() if isinstance(model, Pooled) else None
        if before is None or not isinstance(model, Pooled):
            return None
        kind, headed = model.readout, model.headed

        def whole(state: State) -> State:
            return (headed(readout(state[0], None, kind)).expand(len(state[0]), -1),)

        return [*before, Pool(whole)]
