"""The report of an audit in Chromium: it fits a phone, passes axe, prints, and asks nobody for anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array
from torch import Tensor, nn

import grb
from grb.dataset import Dataset
from grb.dataset.original_names import OriginalNames

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>')


class Neighbours(nn.Module):
    """The sum over neighbours, with a class for every column."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        weight = torch.ones(edge_index.shape[1]) if edge_weight is None else edge_weight
        return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]] * weight[:, None]) + x


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An audit of a ring in which every second node is of a class with a hostile name."""
    n = 40
    y = np.arange(n) % 2
    x = np.eye(2)[y] + 0.01
    ring = np.array([(i, (i + 2) % n) for i in range(n)]).T
    adj = coo_array((np.ones(n), (ring[0], ring[1])), shape=(n, n))
    dataset = Dataset.from_arrays(adj + adj.T, x, y, split={"train": range(10), "test": range(10, n)}, name=HOSTILE[0])
    names = [f"{HOSTILE[1]}-{i}" if i == 11 else f"account-{i}-{'long' * 12}" for i in range(n)]
    dataset.__dict__["names"] = OriginalNames(names, ["honest", HOSTILE[0]], ["a", "b"])
    report = grb.audit(Neighbours(), dataset, metrics="accuracy", effort="quick", surrogates=(), corrupt=False)
    path = tmp_path_factory.mktemp("audit") / "report.html"
    path.write_text(report.render("html"), encoding="utf-8")
    return Path(path).as_uri()


@pytest.mark.parametrize("width", [360, 390, 768, 1280, 1920])
def test_no_width_makes_the_report_scroll_sideways(open_page: Any, address: str, width: int) -> None:
    page = open_page(address, first_sight=True, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("img").count() == 0 and "alert(1)" in page.inner_text("main, body")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_report(open_page: Any, address: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = open_page(address, first_sight=True, color_scheme=scheme, bypass_csp=True)
    found = axe.Axe().run(page)
    assert [(each["id"], each["nodes"][0]["html"][:120]) for each in found.response["violations"]] == []


def test_the_answer_and_the_first_numbers_are_seen_without_scrolling(open_page: Any, address: str) -> None:
    page = open_page(address, first_sight=True)
    for part in (".headline", "table"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 800, part
    page.emulate_media(media="print")
    assert page.locator("table").first.is_visible() and page.locator("svg").first.is_visible()
