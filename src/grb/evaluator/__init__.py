"""Evaluation: boards of attacks against defenses, and checks that an evaluation can be trusted."""

from __future__ import annotations

from grb.evaluator.evaluator import AttackEvaluator, DefenseEvaluator
from grb.evaluator.matrix import Board, Cell, Row, Value, build_board

__all__ = ["AttackEvaluator", "Board", "Cell", "DefenseEvaluator", "Row", "Value", "build_board"]
