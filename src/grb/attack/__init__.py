"""Attacks: an attack returns an edit, and ``run_attack`` is the only road to a result."""

from grb.attack.base import Attack, AttackResult, Scene, Step, run_attack

__all__ = ["Attack", "AttackResult", "Scene", "Step", "run_attack"]
