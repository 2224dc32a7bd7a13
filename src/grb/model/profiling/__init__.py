"""Profiling models of the taxonomy: one blueprint, six convolutions."""

from grb.model.profiling.blueprint import Blueprint, Conv
from grb.model.profiling.build import Profiler, build_profiler, profiler

__all__ = ["Blueprint", "Conv", "Profiler", "build_profiler", "profiler"]
