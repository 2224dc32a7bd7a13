"""Evaluation: boards of attacks against defenses, and checks that an evaluation can be trusted."""

from __future__ import annotations

from grb.evaluator.evaluator import AttackEvaluator, DefenseEvaluator
from grb.evaluator.matrix import Board, Cell, Row, Value, build_board
from grb.evaluator.sanity_checks import Flag, check_model, check_scores, check_trace
from grb.evaluator.score import Evaluation, Prediction, predict_checked, score

__all__ = [
    "AttackEvaluator",
    "Board",
    "Cell",
    "DefenseEvaluator",
    "Evaluation",
    "Flag",
    "Prediction",
    "Row",
    "Value",
    "build_board",
    "check_model",
    "check_scores",
    "check_trace",
    "predict_checked",
    "score",
]
