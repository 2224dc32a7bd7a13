"""Figures: a function for the data, which tests can check, and one that draws it. matplotlib is imported when one draws."""

from grb.visualise.bracket import Bracket, board_brackets, bracket, draw_bracket
from grb.visualise.budget import Sweep, draw_attacks, draw_models, sweeps
from grb.visualise.curve import Curve, curve, draw_curve
from grb.visualise.degree_accuracy import DegreeAccuracy, degree_accuracy, draw_degree_accuracy, measured_correct
from grb.visualise.degrees import Degrees, degrees, draw_degrees
from grb.visualise.diagrams import draw_framework, draw_layer_norm, draw_scenario
from grb.visualise.difficulty import Difficulty, difficulty, draw_difficulty
from grb.visualise.gains import Gains, draw_gains, gains
from grb.visualise.neighbourhood import Neighbourhood, draw_neighbourhood, layout, neighbourhood, telling_target
from grb.visualise.perturbation_gallery import Gallery, ball, draw_gallery, perturbation_gallery
from grb.visualise.placement import draw_placement, draw_reliability
from grb.visualise.process import Strip, draw_process, process, strip
from grb.visualise.queries import QueryCurve, draw_query_curves, query_curves
from grb.visualise.rankings import Ranking, draw_rankings, ranking
from grb.visualise.search import Search, draw_search, search
from grb.visualise.strength_over_cost import CostCurve, draw_strength_over_cost, strength_over_cost
from grb.visualise.style import save
from grb.visualise.taxonomy import Heatmap, draw_heatmap, draw_stability, heatmap
from grb.visualise.taxonomy_components import draw_components, draw_correlation
from grb.visualise.taxonomy_models import draw_model_profiles
from grb.visualise.unnoticeability import Unnoticeability, detections, draw_unnoticeability, homophily, unnoticeability

__all__ = [
    "Bracket",
    "CostCurve",
    "Curve",
    "DegreeAccuracy",
    "Degrees",
    "Difficulty",
    "Gallery",
    "Gains",
    "Heatmap",
    "Neighbourhood",
    "QueryCurve",
    "Ranking",
    "Search",
    "Strip",
    "Sweep",
    "Unnoticeability",
    "ball",
    "board_brackets",
    "bracket",
    "curve",
    "degree_accuracy",
    "degrees",
    "difficulty",
    "detections",
    "draw_attacks",
    "draw_bracket",
    "draw_components",
    "draw_correlation",
    "draw_curve",
    "draw_degree_accuracy",
    "draw_degrees",
    "draw_difficulty",
    "draw_framework",
    "draw_gains",
    "draw_gallery",
    "draw_heatmap",
    "draw_model_profiles",
    "draw_layer_norm",
    "draw_models",
    "draw_neighbourhood",
    "draw_placement",
    "draw_process",
    "draw_query_curves",
    "draw_rankings",
    "draw_reliability",
    "draw_scenario",
    "draw_search",
    "draw_stability",
    "draw_strength_over_cost",
    "draw_unnoticeability",
    "gains",
    "heatmap",
    "homophily",
    "layout",
    "measured_correct",
    "neighbourhood",
    "perturbation_gallery",
    "process",
    "query_curves",
    "ranking",
    "save",
    "search",
    "strength_over_cost",
    "strip",
    "sweeps",
    "telling_target",
    "unnoticeability",
]
