"""Profiling models of the taxonomy: one blueprint, six convolutions."""

from grb.model.profiling.build import ProfilingConfig, build_profiler, profiler
from grb.model.profiling.network import Conv, ProfilingGNN

__all__ = ["ProfilingGNN", "Conv", "ProfilingConfig", "build_profiler", "profiler"]
