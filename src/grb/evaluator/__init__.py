"""Evaluation: boards of attacks against defenses, and checks that an evaluation can be trusted."""

from __future__ import annotations

from grb.evaluator.board import Board, Cell, Estimate, Run, board_from_runs
from grb.evaluator.evaluator import AttackEvaluator, DefenseEvaluator
from grb.evaluator.sanity_checks import Flag, check_model, check_scores, check_trace

__all__ = [
    "AttackEvaluator",
    "Board",
    "Cell",
    "DefenseEvaluator",
    "Flag",
    "Run",
    "Estimate",
    "board_from_runs",
    "check_model",
    "check_scores",
    "check_trace",
]
