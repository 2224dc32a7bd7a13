"""Evaluation: measurements, boards of attacks against defenses, and checks that an evaluation can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb import _lazy

if TYPE_CHECKING:
    from grb.evaluator.board import Board, Cell, Estimate, Run, board_from_runs
    from grb.evaluator.evaluator import AttackEvaluator, DefenseEvaluator
    from grb.evaluator.measurement import Measurement
    from grb.evaluator.sanity_checks import check_model, check_trace
    from grb.evaluator.score_checks import Flag, check_scores
    from grb.evaluator.scoring import Evaluation, Prediction, predict_checked, score

_HOMES = {
    "board": ("Board", "Cell", "Estimate", "Run", "board_from_runs"),
    "evaluator": ("AttackEvaluator", "DefenseEvaluator"),
    "measurement": ("Measurement",),
    "sanity_checks": ("check_model", "check_trace"),
    "scoring": ("Evaluation", "Prediction", "predict_checked", "score"),
    "score_checks": ("Flag", "check_scores"),
}
__all__ = [
    "AttackEvaluator",
    "Board",
    "Cell",
    "DefenseEvaluator",
    "Estimate",
    "Evaluation",
    "Flag",
    "Measurement",
    "Prediction",
    "Run",
    "board_from_runs",
    "check_model",
    "check_scores",
    "check_trace",
    "predict_checked",
    "score",
]
__getattr__, __dir__ = _lazy.attach(
    __name__,
    {name: f"grb.evaluator.{module}" for module, names in _HOMES.items() for name in names},
)
