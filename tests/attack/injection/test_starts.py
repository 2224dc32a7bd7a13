"""Where injected features begin."""

from __future__ import annotations

import torch

from grb.attack.injection.starts import STARTS, Wiring, corners, everywhere, mean_of_targets, noise, other_class

X = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0], [-1.0, -2.0], [9.0, 9.0]])


def wiring(
    pairs: list[tuple[int, int]], count: int, labels: tuple[int, ...] = (0, 0, 1), x: torch.Tensor = X
) -> Wiring:
    """Targets 1, 2 and 3 of five nodes."""
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    return Wiring(x, torch.tensor([1, 2, 3]), torch.tensor(labels), edges, count, (-0.5, 2.0))


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_every_start_gives_a_row_for_every_new_node_and_repeats_itself() -> None:
    own = wiring([(0, 1), (0, 3), (1, 2)], 3)
    for name, start in STARTS.items():
        rows = start(own, drawn())
        assert rows.shape == (3, 2) and rows.isfinite().all(), name
        assert torch.equal(rows, start(own, drawn())), name


def test_the_mean_is_that_of_the_targets_that_a_node_is_joined_with() -> None:
    own = wiring([(0, 1), (0, 2), (1, 3)], 3)
    rows = mean_of_targets(own, drawn())
    # (1 + 3) / 2, (2 + 4) / 2; the third node has no edge; noise has a hundredth of the range
    torch.testing.assert_close(rows, torch.tensor([[2.0, 3.0], [-1.0, -2.0], [0.0, 0.0]]), rtol=0, atol=0.1)
    assert len(mean_of_targets(wiring([(0, 1), (1, 1)], 2), drawn()).unique(dim=0)) == 2


def test_a_row_of_another_class_has_another_label_than_most_targets() -> None:
    own = wiring([(0, 1), (0, 2), (0, 3), (1, 3)], 2)
    assert own.commonest_labels().tolist() == [0, 1]
    for seed in range(20):
        first, second = other_class(own, drawn(seed)).tolist()
        assert first == [-1.0, -2.0] and second in ([1.0, 2.0], [3.0, 4.0])
    both = {tuple(other_class(own, drawn(seed))[1].tolist()) for seed in range(20)}
    assert len(both) == 2


def test_any_row_will_do_where_there_is_one_class_alone() -> None:
    own = wiring([(0, 1)], 1, labels=(0, 0, 0))
    found = {tuple(other_class(own, drawn(seed))[0].tolist()) for seed in range(40)}
    assert found == {(1.0, 2.0), (3.0, 4.0), (-1.0, -2.0)}


def test_corners_are_ends_of_the_range_and_everywhere_is_between_them() -> None:
    own = wiring([], 500)
    assert set(corners(own, drawn()).flatten().tolist()) == {-0.5, 2.0}
    spread = everywhere(own, drawn())
    assert -0.5 <= float(spread.min()) < -0.4 and 1.9 < float(spread.max()) <= 2.0
    assert 0.18 < float(noise(own, drawn()).std()) < 0.22  # a tenth of the larger end
