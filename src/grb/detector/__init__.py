"""Detectors: how suspicious nodes and edges of a graph are to a defender who has seen the training graph alone."""

from grb.detector.base import Detector
from grb.detector.build import build_detector
from grb.detector.consistency import Consistency
from grb.detector.degree import Degree
from grb.detector.detection import Detection, Roc, detect
from grb.detector.homophily import Homophily
from grb.detector.joint import Joint
from grb.detector.likelihood import FeatureLikelihood

__all__ = [
    "Consistency",
    "Degree",
    "Detection",
    "Detector",
    "FeatureLikelihood",
    "Homophily",
    "Joint",
    "Roc",
    "build_detector",
    "detect",
]
