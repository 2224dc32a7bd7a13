"""Attacks: an attack returns an edit, and ``run_attack`` is the only road to a result."""

from grb.attack.base import Attack, AttackContext, AttackResult, Step, run_attack

__all__ = ["Attack", "AttackResult", "AttackContext", "Step", "run_attack"]
