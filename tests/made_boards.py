"""Boards made up in Python, as large as wanted and without any training, and one small store of true results."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from grb.evaluator.board import CLEAN, Board, Run, board_from_runs

MODES = ("easy", "medium", "hard", "full")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "gcn\u202etxt.exe",
    "x" * 10_000,
    "=cmd|' /C calc'!A0",
    "</script><script>alert(2)</script><!--",
    "{{ 7 * 7 }}",
)


def key(*parts: object) -> str:
    """64 hexadecimal digits that belong to some words."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def made_board(
    defenses: Sequence[str] = ("gcn+ln", "gcn", "gat", "mlp"),
    attacks: Sequence[str] = ("tdgia", "fgsm", "rnd"),
    *,
    difficulties: Sequence[str] = MODES,
    white_box: Sequence[str] = ("pgd",),
    repeats: int = 3,
    victims: int = 1,
    targets: int = 40,
    paper: bool = False,
    dataset: str = "made-up",
    scenario: str = "injection",
    recipe: str = "made-up",
    flags: Sequence[str] = (),
    cards: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Board:
    """Earlier defenses are more robust, earlier attacks stronger, harder targets harder to attack."""
    draw = np.random.default_rng(seed)
    rows = []
    for mode_place, difficulty in enumerate(difficulties):
        for place, defense in enumerate(defenses):
            for victim in range(victims):
                clean = 0.9 - 0.02 * place
                listed = [(CLEAN, "none", 1, 0.0)]
                listed += [
                    (name, "transfer", repeats, 0.3 / (1 + number) / (1 + 0.3 * mode_place) * (1 + 0.2 * place))
                    for number, name in enumerate(attacks)
                ]
                listed += [(name, "white-box", 1, 0.5) for name in white_box]
                for attack, knowledge, count, loss in listed:
                    for repeat in range(count):
                        bits = draw.random(targets) < max(0.05, clean - loss)
                        changed = 0.0 if attack == CLEAN else min(1.0, loss + 0.02)
                        metadata = _metadata(attack, defense, difficulty, knowledge, repeat, victim)
                        rows.append(
                            Run(
                                attack,
                                defense,
                                difficulty,
                                repeat,
                                victim,
                                float(bits.mean()),
                                changed,
                                knowledge,
                                bits,
                                metadata,
                            )  # type: ignore[arg-type]
                        )
    table = {
        (attack, defense, difficulty): (61.25, 1.5)
        for attack in attacks
        for defense in defenses
        for difficulty in difficulties
    }
    table |= {(CLEAN, defense, difficulty): (80.0, 0.5) for defense in defenses for difficulty in difficulties}
    board = board_from_runs(
        rows,
        dataset=dataset,
        scenario=scenario,
        difficulties=difficulties,
        paper=table if paper else None,
        meta={
            "title": f"{scenario} on {dataset}",
            "recipe": recipe,
            "synthetic": False,
            "repeats": repeats,
            "victims": victims,
            "measured": len(rows),
            "planned": len(rows),
            **({"cards": dict(cards)} if cards else {}),
        },
    )
    return replace(board, flags=tuple(flags))


def _metadata(attack: str, defense: str, difficulty: str, knowledge: str, repeat: int, victim: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "score": key("score", attack, defense, difficulty, knowledge, repeat, victim),
        "victim": key("fit", defense, victim),
        "victim_seed": victim,
        "victim_seconds": 1.25,
        "parameters": 1000,
        "threads": 1,
        "repeat": repeat,
        "victim_spec": {"name": defense, "params": {"epochs": 30}},
    }
    if attack == CLEAN:
        return metadata
    own = (defense, victim) if knowledge == "white-box" else ()
    return metadata | {
        "attack": key("attack", attack, difficulty, repeat, *own),
        "attack_seed": repeat,
        "attack_seconds": 0.5 + repeat,
        "attack_megabytes": 300.0,
        "attack_steps": 10,
        "edit_bytes": 2048,
        "budget": {"nodes": 9.0, "edges": 45.0},
        "threat": {"kind": "injection", "nodes": 9, "edges_per_node": 5, "feature_range": [-0.9, 0.9]},
        "surrogate": "gcn" if knowledge == "transfer" else defense,
        "notes": [],
        "attack_spec": {"name": attack, "params": {"iterations": 10}},
    }


@cache
def tiny_store() -> Path:
    """A store with all results of the recipe synth-tiny in its quick variant; made once per process, in seconds."""
    from grb.pipeline import Limits, Store, plan_study, read_recipe, run

    store = Store(Path(os.environ["GRB_HOME"]) / "made-store")
    study = plan_study(read_recipe("synth-tiny").quickly())
    outcome = run(study.jobs.values(), store, limits=Limits(workers=0))
    record = study.record({})
    assert outcome.complete and record is not None
    store.write(record)
    return store.path
