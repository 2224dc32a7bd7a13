"""An engineer's way: a graph of accounts in CSV files, 1 fraud in 16, and four questions.

How good is the model beside always saying "no"? How many fake accounts does it take to hide frauds? Which accounts fall first?
What happens to everybody else? Run it with the name of a folder to keep the report there.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import grb


def write_accounts(folder: Path, n: int = 800, seed: int = 0) -> None:
    """Accounts with an id, a country, two amounts and an opening day; payments between them; frauds pay each other."""
    rng = np.random.default_rng(seed)
    fraud = rng.random(n) < 0.06
    rows = ["account_id,opened,country,amount,payments,fraud"]
    for i in range(n):
        day = np.datetime64("2024-01-01") + int(365 * i / n)
        country = ["DE", "FR", "IT"][rng.integers(3)]
        amount, payments = rng.normal(1 + 1.5 * fraud[i]), rng.poisson(3 + 3 * fraud[i])
        rows.append(f"ACC-{i:05d},{day},{country},{amount:.3f},{payments},{'yes' if fraud[i] else 'no'}")
    (folder / "nodes.csv").write_text("\n".join(rows))
    frauds = np.flatnonzero(fraud)
    lines = ["payer,payee"]
    for i in range(n):
        for _ in range(4):
            other = rng.choice(frauds) if fraud[i] and rng.random() < 0.8 else rng.integers(n)
            if other != i:
                lines.append(f"ACC-{i:05d},ACC-{other:05d}")
    (folder / "edges.csv").write_text("\n".join(lines))


folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
folder.mkdir(parents=True, exist_ok=True)
write_accounts(folder)
columns = {"id": "account_id", "label": "fraud", "time": "opened", "source": "payer", "target": "payee"}
dataset = grb.Dataset.from_csv(folder, columns=columns, name="accounts", feat_norm="standardise")
print(dataset, dataset.names.classes, dataset.names.features)

model = grb.train("gcn", dataset, epochs=150, class_weights="balanced", metric="f1:1", hidden_features=[16])
limits = {"edges_per_node": 5, "constraints": {"one_hot": ["country"], "integer": ["payments"]}}
report = grb.audit(
    model,
    dataset,
    metrics="recall:yes,precision:yes,accuracy",  # recall of the frauds leads, so that frauds are the targets
    threats={"injection": limits},
    budgets={"injection": [1, 2, 4, 8]},
    scenarios=["injection"],
    effort="quick",
    corrupt=False,
    store=folder / "steps",  # run it again after an interruption: it goes on
)
values = report.values
print("1.", {name: round(value, 2) for name, value in values["clean"]["values"].items()}, "always 'no':", end=" ")
print({name: round(value, 2) for name, value in values["clean"]["baselines"]["majority"].items()})
(injection,) = values["scenarios"]
print("2.", injection["sentence"])
print("3.", ", ".join(f"{row['node']} (at {row['budget']})" for row in injection["vulnerable"][:5]))
print("4.", {name: round(value, 3) for name, value in injection["collateral"].items()})
report.save(folder / "report.html")
