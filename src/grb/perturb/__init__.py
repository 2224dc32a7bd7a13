"""Perturbations of graphs: the taxonomy paper's thirteen, compositions, and a few more.

Each is a frozen value that turns a graph, or a collection of graphs, into a new one:

>>> import grb, torch
>>> graph = grb.load_dataset("synth-tiny").graph
>>> grb.perturb.LowPass()(graph).num_features == graph.num_features
True
>>> grb.perturb.FragK1()(graph, torch.Generator().manual_seed(0)).num_edges < graph.num_edges
True
"""

from grb.perturb.base import Perturbation
from grb.perturb.build import Compose, Original, build_perturbation, remarks
from grb.perturb.cache import perturbed
from grb.perturb.coarsen import Coarsen
from grb.perturb.curvature import CurvRewire, forman_curvature
from grb.perturb.edges import AddEdges, DropEdges, FullyConn, NoEdges, Sparsify
from grb.perturb.features import NodeDeg, NoNodeFtrs, RandFtrs
from grb.perturb.fiedler import FiedlerFrag
from grb.perturb.fragments import Frag, FragK1, FragK2, FragK3
from grb.perturb.rewire import RandRewire
from grb.perturb.spectral import HighPass, LowPass, MidPass, hard_band, wavelet_bank
from grb.perturb.weights import NoEdgeFtrs, RandEdgeFtrs

METHODS = (
    RandFtrs,
    NoNodeFtrs,
    NodeDeg,
    LowPass,
    MidPass,
    HighPass,
    RandRewire,
    NoEdges,
    FullyConn,
    FragK1,
    FragK2,
    FragK3,
    FiedlerFrag,
)
"""The thirteen of the paper, in the order of its tables."""

__all__ = [
    "METHODS",
    "AddEdges",
    "Coarsen",
    "Compose",
    "CurvRewire",
    "DropEdges",
    "FiedlerFrag",
    "Frag",
    "FragK1",
    "FragK2",
    "FragK3",
    "FullyConn",
    "HighPass",
    "LowPass",
    "MidPass",
    "NoEdgeFtrs",
    "NoEdges",
    "NoNodeFtrs",
    "NodeDeg",
    "Original",
    "Perturbation",
    "RandEdgeFtrs",
    "RandFtrs",
    "RandRewire",
    "Sparsify",
    "build_perturbation",
    "forman_curvature",
    "hard_band",
    "perturbed",
    "remarks",
    "wavelet_bank",
]
