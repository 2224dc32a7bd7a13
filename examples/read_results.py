"""Read a table of results with pandas (pip install pandas; grb does without it) and ask it your own question.

The table is what `grb store copy results scores.csv --recipe grb-cora` writes; without one, that of docs/results.
"""

import sys
from pathlib import Path

import pandas as pd

path = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "results" / "leaderboard-grb-cora.csv"
scores = pd.read_csv(path)
full = scores[scores["difficulty"] == "full"]
board = full.pivot_table(index="defense", columns="attack", values="accuracy", aggfunc="mean")
board["worst"] = board.min(axis=1)
print((100 * board).round(2).sort_values("worst", ascending=False))
print("lost to the strongest attack:", (100 * (board["none"] - board["worst"])).round(1).to_dict())
