"""Normalisations of adjacency matrices by their old names."""

from grb.compat.adjacency import GCNAdjNorm as GCNAdjNorm
from grb.compat.adjacency import RobustGCNAdjNorm as RobustGCNAdjNorm
from grb.compat.adjacency import SAGEAdjNorm as SAGEAdjNorm
from grb.compat.adjacency import SPARSEAdjNorm as SPARSEAdjNorm
from grb.compat.adjacency import feature_normalize as feature_normalize
