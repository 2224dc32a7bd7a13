"""An analysis as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

from grb.taxonomy.analysis import LEVEL, Analysis, Stability
from grb.taxonomy.cluster import as_groups
from grb.taxonomy.correlation import Correlation
from grb.taxonomy.profile import Array
from grb.taxonomy.representative import Subset


def as_dict(analysis: Analysis) -> dict[str, Any]:
    """Everything as plain values for JSON: strings, numbers, lists and dicts; NaN becomes None.

    ::

        model            name or None
        datasets         [d] names, as given
        perturbations    [p] names, as given
        original         [d] AUROC of the unperturbed datasets, or None
        log2_ratio       [d][p], None where missing
        missing          [[dataset, perturbation], ...]
        used             {datasets: [...], perturbations: [...]} behind everything below
        interval         {level, draws, error, low, high}, each matrix [used d][used p] of log2 ratios; None without runs
        tree             {datasets: [...], linkage: [[left, right, height, size], ...], leaves: [top, ...]} or None
        groups           {cut, joins: [[3, 4]], of: {dataset: group}, members: {group: [dataset, ...]}}; empty without a tree
        known            {of: {dataset: group}, agreement} or None
        pca              {explained: [c], cumulative: [c], loadings: {perturbation: [c]}, scores: {dataset: [c]}} or None
        correlation      {perturbations: {names, r: [[...]], cells} or None, models: {log2: {...}, auroc: {...}}}
        seeds            [{dataset, perturbation, runs, mean, std, percent}, ...]
        stability        {verdict, against, agreement: {k: {variant: index}}, kept: {dataset: share},
                          silhouettes: {k: value}, permutation: {distance|within: {observed, null_mean, null_low, p, draws}},
                          bootstrap: {draws, mean, low, high, together: [[...]]} or None} or None
        representatives  {datasets: [...], distance, saturated: [...]} or None
        recommended      the same for a recommended subset, or None
        notes            [sentence, ...]
        draws, seed      of the shuffles and of the bootstrap

    Keys of dicts are strings, also the numbers of groups.
    """
    used, found, parts = analysis.profiles, analysis.tree, analysis.components
    return {
        "model": analysis.given.model,
        "datasets": list(analysis.given.datasets),
        "perturbations": list(analysis.given.perturbations),
        "original": None if analysis.given.original is None else _plain(analysis.given.original),
        "log2_ratio": _plain(analysis.given.values),
        "missing": [list(cell) for cell in analysis.given.missing],
        "used": {"datasets": list(used.datasets), "perturbations": list(used.perturbations)},
        "interval": None
        if analysis.spread is None
        else {"level": LEVEL, "draws": analysis.draws, **{k: _plain(v) for k, v in analysis.spread._asdict().items()}},
        "tree": None
        if found is None
        else {
            "datasets": list(found.datasets),
            "linkage": [[int(a), int(b), height, int(size)] for a, b, height, size in found.linkage.tolist()],
            "leaves": list(found.leaves),
        },
        "groups": {
            "cut": analysis.cut,
            "joins": [list(pair) for pair in analysis.joins],
            "of": dict(analysis.groups),
            "members": as_groups(used.datasets, analysis.labels) if analysis.groups else {},
        },
        "known": None if analysis.known is None else {"of": dict(analysis.known), "agreement": analysis.agreement},
        "pca": None
        if parts is None
        else {
            "explained": _plain(parts.explained),
            "cumulative": _plain(parts.cumulative),
            "loadings": {name: _plain(parts.loadings[:, j]) for j, name in enumerate(parts.columns)},
            "scores": {name: _plain(parts.scores[i]) for i, name in enumerate(parts.rows)},
        },
        "correlation": {
            "perturbations": _correlation(analysis.perturbations),
            "models": {of: _correlation(table) for of, table in analysis.models.items()},
        },
        "seeds": [row._asdict() for row in analysis.seeds],
        "stability": None if analysis.stability is None else _stability_dict(analysis.stability),
        "representatives": _subset(analysis.chosen),
        "recommended": _subset(analysis.recommended),
        "notes": list(analysis.notes),
        "draws": analysis.draws,
        "seed": analysis.seed,
    }


def _stability_dict(found: Stability) -> dict[str, Any]:
    boot = found.bootstrap
    return {
        "verdict": found.verdict,
        "against": found.against,
        "agreement": {str(size): dict(own) for size, own in found.agreement.items()},
        "kept": dict(found.kept),
        "silhouettes": {str(size): value for size, value in found.silhouettes.items()},
        "permutation": {
            name: {k: _plain(v) for k, v in test._asdict().items()} for name, test in found.permutation.items()
        },
        "bootstrap": None
        if boot is None
        else {
            "draws": len(boot.agreement),
            "mean": float(boot.agreement.mean()),
            "low": float(np.quantile(boot.agreement, 0.05)),
            "high": float(np.quantile(boot.agreement, 0.95)),
            "together": _plain(boot.together),
        },
    }


def _correlation(table: Correlation | None) -> dict[str, Any] | None:
    return None if table is None else {"names": list(table.names), "r": _plain(table.r), "cells": table.cells}


def _subset(subset: Subset | None) -> dict[str, Any] | None:
    if subset is None:
        return None
    return {"datasets": list(subset.datasets), "distance": subset.distance, "saturated": list(subset.saturated)}


def _plain(value: Array | float | int) -> Any:
    """Lists and numbers of an array; None for NaN."""
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value]
    number = float(value)
    return None if np.isnan(number) else int(value) if isinstance(value, int) else number
