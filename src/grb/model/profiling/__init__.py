"""Profiling models of the taxonomy: one blueprint, six convolutions."""

from grb.model.profiling.build import MIN_DECREASE, PATIENCE, ProfilingConfig, build_profiler, profiler
from grb.model.profiling.network import Conv, ProfilingGNN

__all__ = ["MIN_DECREASE", "PATIENCE", "Conv", "ProfilingConfig", "ProfilingGNN", "build_profiler", "profiler"]
