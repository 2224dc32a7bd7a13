"""Files that scripts of the papers' era write; none of them is a pickle."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np
import torch
from torch import Tensor, nn

from grb.atomic import write_atomic
from grb.compat.arguments import say_once
from grb.errors import DataError, MissingExtra
from grb.model.base import GraphModel
from grb.trainer import checkpoint

Directory = str | os.PathLike[str]


def save_features(features: Any, file_dir: Directory, file_name: str = "features.npy") -> Path | None:
    """Write features as npy.

    Args:
        features: A tensor or an array; None writes nothing.
        file_dir: Directory, made if need be.
        file_name: Name there.
    """
    if features is None:
        return None
    rows = features.detach().cpu().numpy() if isinstance(features, Tensor) else np.asarray(features)
    return write_atomic(_made(file_dir) / file_name, lambda stream: np.save(stream, rows, allow_pickle=False))


def save_adj(adj: Any, file_dir: Directory, file_name: str = "adj.npz") -> Path | None:
    """Write a scipy matrix as npz, which ``scipy.sparse.load_npz`` reads; ``adj.pkl`` becomes ``adj.npz``.

    Args:
        adj: A scipy sparse matrix; None writes nothing.
        file_dir: Directory, made if need be.
        file_name: Name there.
    """
    from scipy.sparse import csr_matrix, save_npz

    if adj is None:
        return None
    path = _made(file_dir) / file_name
    if path.suffix != ".npz":
        say_once(
            f"save_adj: no pickle is written, '{path.name}' becomes '{path.stem}.npz'; scipy.sparse.load_npz reads it"
        )
        path = path.with_suffix(".npz")
    return write_atomic(path, lambda stream: save_npz(stream, csr_matrix(adj)))


def save_model(model: nn.Module, save_dir: Directory | None, name: str = "model.pt", verbose: bool = False) -> Path:
    """Write a model: of ours as safetensors, whatever the name; of others its state dict.

    Args:
        model: A trained model.
        save_dir: Directory, made if need be; one with the time in its name if None.
        name: File name there.
        verbose: Without effect.
    """
    directory = time.strftime("./tmp_%Y_%m_%d_%H_%M_%S", time.localtime()) if save_dir is None else save_dir
    path = _made(directory) / name
    if isinstance(model, GraphModel):
        if path.suffix != ".safetensors":
            say_once(
                f"'{path.name}' is a safetensors file whatever its name: torch.load does not read it, grb.load_model(path) does"
            )
        return checkpoint.save_model(model, path)
    state = {key: value.detach().cpu() for key, value in model.state_dict().items()}
    return write_atomic(path, lambda stream: torch.save(state, stream))


def save_dict_to_json(result_dict: dict[str, Any], file_dir: Directory, file_name: str, verbose: bool = False) -> Path:
    """Write a dictionary as JSON; numbers of numpy and torch become plain ones."""
    text = json.dumps(result_dict, indent=2, default=_plain)

    def write(stream: IO[bytes]) -> None:
        stream.write(text.encode())

    return write_atomic(_made(file_dir) / file_name, write)


def save_dict_to_xlsx(
    result_dict: dict[str, Any],
    file_dir: Directory,
    file_name: str = "result.xlsx",
    index: int = 0,
    verbose: bool = False,
) -> Path:
    """Write a dictionary as a sheet with one row; needs pandas and openpyxl."""
    return save_df_to_xlsx(_pandas().DataFrame(result_dict, index=[index]), file_dir, file_name)


def save_df_to_xlsx(df: Any, file_dir: Directory, file_name: str = "result.xlsx", verbose: bool = False) -> Path:
    """Write a DataFrame of pandas as a sheet; needs openpyxl."""
    path = _made(file_dir) / file_name
    try:
        df.to_excel(path, index=True)
    except ImportError as error:
        raise MissingExtra(
            "a sheet needs openpyxl. Install it with: pip install openpyxl; or use save_df_to_csv"
        ) from error
    return path


def save_df_to_csv(df: Any, file_dir: Directory, file_name: str = "result.csv", verbose: bool = False) -> Path:
    """Write a DataFrame of pandas as CSV."""
    path = _made(file_dir) / file_name
    df.to_csv(path, index=True)
    return path


def download(url: str, save_path: Directory) -> None:
    """Refused: files are got by name, with their size and hash checked."""
    raise DataError(f"download({url!r:.60}) is gone, files are got by name and checked: `grb data get grb-cora`")


class Logger:
    """A stream that also writes into a file; close it, or use it as a context.

    Args:
        file_dir: Directory, made if need be.
        file_name: Name there; the file is continued if it exists.
        stream: Where text goes besides; stdout if not given.
    """

    def __init__(
        self, file_dir: Directory = "./logs", file_name: str = "default.out", stream: TextIO | None = None
    ) -> None:
        self.terminal = sys.stdout if stream is None else stream
        self.log = (_made(file_dir) / file_name).open("a", encoding="utf-8")

    def write(self, message: str) -> int:
        """Write to both; returns the number of characters."""
        self.terminal.write(message)
        return self.log.write(message)

    def flush(self) -> None:
        """Flush both."""
        self.terminal.flush()
        self.log.flush()

    def close(self) -> None:
        """Close the file; the stream stays open."""
        self.log.close()

    def __enter__(self) -> Logger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _made(directory: Directory) -> Path:
    path = Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is no JSON value")


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise MissingExtra("tables need pandas. Install it with: pip install pandas openpyxl") from error
