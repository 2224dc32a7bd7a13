"""How do the calls of THUDM/grb do on this package and on the original? One script, run once with each, one JSON line per seed.

    python benchmarks/original.py --data DIR_OF_GRB_DATASETS --seeds 3 --save WEIGHTS
    PYTHONPATH=CLONE_OF_THUDM_GRB python benchmarks/original.py --data DIR_OF_GRB_DATASETS --seeds 3 --save WEIGHTS
    python benchmarks/original.py --data DIR_OF_GRB_DATASETS --weights WEIGHTS
    python benchmarks/original.py --data DIR_OF_GRB_DATASETS --cross THERE HERE

Trains three GCNs, attacks the first by injection, and evaluates the edits on all three: accuracy in fractions. Weights and
edits are saved. With ``--weights`` nothing is trained: the state dicts that the second line has saved are attacked here.
With ``--cross`` nothing is computed anew: every saved edit meets the two-layer models of both packages, so that one sees
whether a difference comes with the edit or with the model. The original needs two changes for current scipy: masks of
torch as an index, and a ``vstack`` that is no longer COO.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import scipy.sparse as sp
import torch

import grb
from grb import utils
from grb.attack.injection import FGSM, PGD, RAND, SPEIT, TDGIA
from grb.dataset import Dataset
from grb.model.torch import GCN
from grb.trainer.trainer import Trainer
from grb.utils.normalize import GCNAdjNorm

LIMITS: dict[str, Any] = {
    "n_inject_max": 60,
    "n_edge_max": 20,
    "feat_lim_min": -0.94,
    "feat_lim_max": 0.94,
    "device": "cpu",
}
# layers and layer norm
MODELS = {"attacked": (3, False), "layer_norm": (3, True), "two_layers": (2, False)}


def make(name: str, dataset: Any) -> Any:
    layers, norm = MODELS[name]
    return GCN(
        in_features=dataset.num_features,
        out_features=dataset.num_classes,
        hidden_features=64,
        n_layers=layers,
        adj_norm_func=GCNAdjNorm,
        layer_norm=norm,
        residual=False,
        dropout=0.5,
    )


def trained(name: str, dataset: Any, epochs: int, place: Path) -> Any:
    model = make(name, dataset)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    loss = torch.nn.functional.cross_entropy
    trainer = Trainer(
        dataset=dataset,
        optimizer=adam,
        loss=loss,
        lr_scheduler=False,
        early_stop=True,
        early_stop_patience=500,
        feat_norm=None,
        device="cpu",
    )
    trainer.train(
        model=model,
        n_epoch=epochs,
        eval_every=1,
        save_after=0,
        save_dir=str(place),
        save_name=f"{name}.pt",
        train_mode="inductive",
        verbose=False,
    )
    best = place / f"{name}.pt"
    if best.exists():  # the original pickles its best epoch, ours are safetensors
        model = grb.load_model(best) if hasattr(grb, "load_model") else torch.load(best, weights_only=False)
    torch.save(model.state_dict(), place / f"{name}.state.pt")
    return model


def accuracy(model: Any, dataset: Any, features: Any, adj: Any) -> float:
    norm = GCNAdjNorm
    found = utils.evaluate(
        model,
        features=features,
        adj=adj,
        labels=dataset.labels,
        adj_norm_func=norm,
        mask=dataset.test_mask,
        device="cpu",
    )
    return round(float(found), 4)


def attacked(models: dict[str, Any], dataset: Any, steps: int, seed: int, place: Path) -> dict[str, float]:
    ours: dict[str, Any] = (
        {"seed": seed} if hasattr(grb, "load_model") else {}
    )  # there the global generators draw edges
    attacks = {
        "rand": RAND(**LIMITS),
        "fgsm": FGSM(epsilon=0.01, n_epoch=steps, **LIMITS),
        "pgd": PGD(epsilon=0.01, n_epoch=steps, **LIMITS),
        "speit": SPEIT(lr=0.01, n_epoch=steps, **LIMITS),
        "tdgia": TDGIA(lr=0.01, n_epoch=steps, **LIMITS),
    }
    found = {f"clean {name}": accuracy(model, dataset, dataset.features, dataset.adj) for name, model in models.items()}
    for name, attack in attacks.items():
        adj, features = attack.attack(
            model=models["attacked"],
            adj=dataset.adj,
            features=dataset.features,
            target_mask=dataset.test_mask,
            adj_norm_func=GCNAdjNorm,
            **ours,
        )
        sp.save_npz(place / f"{name}.adj.npz", sp.csr_matrix(adj))
        torch.save(features, place / f"{name}.features.pt")
        whole = torch.cat([dataset.features, features])
        found |= {f"{name} on {victim}": accuracy(model, dataset, whole, adj) for victim, model in models.items()}
    return found


def cross(places: dict[str, Path], name: str, data: str) -> None:
    """Accuracy in % of two-layer models of either package under edits of either, every edit on every model."""
    dataset = Dataset(name=name, data_dir=data, mode="full", feat_norm="arctan", verbose=False)
    victims = {
        home: [utils.load_weights(make("two_layers", dataset), path) for path in place.glob("*/two_layers.state.pt")]
        for home, place in places.items()
    }
    for attack in ("clean", "fgsm", "pgd", "speit", "tdgia"):
        for maker, place in places.items():
            graphs = [(dataset.adj, dataset.features)]
            if attack != "clean":
                graphs = [read_edit(each.parent, attack, dataset) for each in place.glob(f"*/{attack}.features.pt")]
            for home, models in victims.items():
                found = [100 * accuracy(model, dataset, x, adj) for adj, x in graphs for model in models]
                spread = statistics.stdev(found) if len(found) > 1 else 0.0
                pairs = {"attack": attack, "edits from": maker, "models from": home, "pairs": len(found)}
                print(
                    json.dumps({**pairs, "mean": round(statistics.fmean(found), 2), "std": round(spread, 2)}),
                    flush=True,
                )


def read_edit(place: Path, attack: str, dataset: Any) -> tuple[Any, torch.Tensor]:
    features = torch.load(place / f"{attack}.features.pt", weights_only=True).detach()
    return sp.load_npz(place / f"{attack}.adj.npz"), torch.cat([dataset.features, features])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--dataset", default="grb-cora")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--save", type=Path, default=Path("weights"))
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--cross", type=Path, nargs=2, metavar=("THERE", "HERE"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.cross:
        cross(dict(zip(("there", "here"), given.cross, strict=True)), given.dataset, given.data)
        return
    for seed in range(given.seeds):
        utils.fix_seed(seed)
        dataset = Dataset(name=given.dataset, data_dir=given.data, mode="full", feat_norm="arctan", verbose=False)
        place = (given.weights or given.save) / str(seed)
        for each in (place, given.save / str(seed)):
            each.mkdir(parents=True, exist_ok=True)
        if given.weights is None:
            models = {name: trained(name, dataset, given.epochs, place) for name in MODELS}
        else:  # the original's layer norm is no part of ours
            files = {name: place / f"{name}.state.pt" for name in ("attacked", "two_layers")}
            models = {name: utils.load_weights(make(name, dataset), path) for name, path in files.items()}
        package = str(Path(utils.__file__).parent.parent)
        found = attacked(models, dataset, given.steps, seed, given.save / str(seed))
        print(json.dumps({"package": package, "seed": seed, **found}), flush=True)


if __name__ == "__main__":
    main()
