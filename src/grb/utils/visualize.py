"""The figure of a whole graph by its old name."""

from grb.compat.figures import plot_graph as plot_graph
