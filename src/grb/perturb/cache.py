"""Perturbed graphs on disk, by the contents of the graph and the perturbation's settings."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Adjacency, CompleteAdjacency, Graph, Pattern, adjacency_from_csr
from grb.graph.files import read_npz, write_npz
from grb.graph.validate import check_features
from grb.perturb.base import Perturbation
from grb.perturb.build import costly

Arrays = dict[str, "np.ndarray[Any, Any]"]


def spec(perturbation: Perturbation) -> dict[str, Any]:
    """Everything that a result depends on besides the graph and the seed, as JSON values.

    >>> from grb.perturb import Frag
    >>> spec(Frag(2))
    {'name': 'grb.perturb.fragments:Frag', 'version': 1, 'k': 2, 'compat': None}
    """
    kind: type[Any] = type(perturbation)
    if not is_dataclass(kind):
        raise DataError(
            f"a {kind.__name__} is not a dataclass, so its settings are not known; make it one to keep results"
        )
    settings = {field.name: getattr(perturbation, field.name) for field in fields(kind)}
    plain = {key: [spec(part) for part in value] if key == "parts" else value for key, value in settings.items()}
    return {"name": f"{kind.__module__}:{kind.__qualname__}", "version": perturbation.version, **plain}


def key(perturbation: Perturbation, graph: Graph, seed: int) -> str:
    """sha256 of the graph's fingerprint, the settings, and the seed where it matters."""
    parts = {
        "format": 1,
        "graph": graph.fingerprint(),
        "perturbation": spec(perturbation),
        "seed": int(seed) if perturbation.random else None,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def perturbed(
    perturbation: Perturbation, graph: Graph, seed: int = 0, *, folder: str | os.PathLike[str] | None = None
) -> Graph:
    """The perturbed graph; from ``folder`` if it is there, and kept there if that is worth it.

    Kept are results that take longer to compute than to read, hard bands and Fiedler fragments; all others are made anew in
    a fraction of a second. A file that is damaged is made again.

    Args:
        perturbation: What to do.
        graph: The graph or collection.
        seed: Random seed of the generator.
        folder: Directory of kept results; nothing is kept if not given. The pipeline uses a directory below ``GRB_HOME``.
    """
    if folder is None or not costly(perturbation, graph):
        return perturbation(graph, torch.Generator().manual_seed(seed))
    path = Path(folder) / f"{key(perturbation, graph, seed)}.npz"
    if path.exists():
        try:
            return _unpacked(read_npz(path), graph)
        except DataError:
            path.unlink(missing_ok=True)
    result = perturbation(graph, torch.Generator().manual_seed(seed))
    write_npz(path, _packed(result, graph))
    return result


def _packed(result: Graph, graph: Graph) -> Arrays:
    """What differs between two graphs with the same nodes."""
    arrays: Arrays = {}
    if isinstance(result.adj, CompleteAdjacency):
        arrays["complete"] = result.adj.ptr.cpu().numpy()
    elif result.adj is not graph.adj:
        arrays |= _csr_arrays("adj", result.adj.pattern, result.adj.values)
    if isinstance(result.x, CSR):
        arrays |= {"x_width": np.array(result.x.shape[1])} | _csr_arrays("x", result.x.pattern, result.x.values)
    elif result.x is not graph.x:
        arrays["x"] = result.x.detach().cpu().numpy()
    return arrays


def _csr_arrays(name: str, pattern: Pattern, values: Tensor | None) -> Arrays:
    arrays = {f"{name}_indptr": pattern.indptr.cpu().numpy(), f"{name}_indices": pattern.indices.cpu().numpy()}
    return arrays if values is None else arrays | {f"{name}_values": values.detach().cpu().numpy()}


def _unpacked(arrays: Arrays, graph: Graph) -> Graph:
    """The graph with what was kept; refuses arrays that do not fit it."""
    adj: Adjacency = graph.adj
    if "complete" in arrays:
        adj = CompleteAdjacency(torch.from_numpy(arrays["complete"]))
    elif "adj_indptr" in arrays:
        own = (arrays["adj_indptr"], arrays["adj_indices"], arrays.get("adj_values"))
        adj = adjacency_from_csr(*own, (graph.n, graph.n))[0]
    x = graph.x
    if "x" in arrays:
        x = check_features(arrays["x"], graph.n)
    elif "x_indptr" in arrays:
        x = _sparse(arrays, graph.n)
    return replace(graph, adj=adj.to(graph.adj.device), x=x.to(graph.adj.device))


def _sparse(arrays: Arrays, n: int) -> CSR:
    indptr, indices, width = arrays["x_indptr"], arrays["x_indices"], int(arrays["x_width"])
    values = arrays.get("x_values")
    sound = len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == len(indices) and (np.diff(indptr) >= 0).all()
    inside = not len(indices) or (indices.min() >= 0 and indices.max() < width)
    if not (sound and inside and (values is None or len(values) == len(indices))):
        raise DataError("sparse features that were kept do not fit the graph")
    pattern = Pattern(torch.from_numpy(indptr), torch.from_numpy(indices), width)
    return CSR(pattern, None if values is None else torch.from_numpy(values))
