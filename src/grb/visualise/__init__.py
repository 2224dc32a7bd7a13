"""Figures: a function for the data, which tests can check, and one that draws it. matplotlib is imported when one draws."""

from grb.visualise.curve import Curve, curve, draw_curve
from grb.visualise.neighbourhood import Neighbourhood, draw_neighbourhood, layout, neighbourhood, telling_target
from grb.visualise.style import save

__all__ = [
    "Curve",
    "Neighbourhood",
    "curve",
    "draw_curve",
    "draw_neighbourhood",
    "layout",
    "neighbourhood",
    "save",
    "telling_target",
]
