"""Figure of a taxonomy by several models: one heat map each, with the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from grb.errors import DataError
from grb.taxonomy import Analysis, Profiles, as_published
from grb.visualise import style
from grb.visualise.taxonomy import DIVERGING, LIMIT, SLANTED, _bare, _colourbar, _separate, _write_cells, group_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS = 2
# with more rows the numbers in the cells could not be read
MOST_ROWS = 12


def draw_model_profiles(models: Mapping[str, Profiles], analysis: Analysis) -> Figure:
    """Sensitivity profiles by every model (Figure B.1), in the order and with the groups of an analysis.

    Args:
        models: Profiles by model, at least two.
        analysis: The analysis whose tree orders the rows; datasets that not all models have are left out.
    """
    if len(models) < 2:
        raise DataError(f"profiles by model need at least two models, got {len(models)}")
    models = {name: as_published(own) for name, own in models.items()}
    given = as_published(analysis.given)
    order = analysis.tree.leaves if analysis.tree is not None else list(given.datasets)
    listed = [*order, *(name for name in given.datasets if name not in order)]
    rows = [name for name in listed if all(name in own.datasets for own in models.values())]
    columns = [name for name in given.perturbations if all(name in own.perturbations for own in models.values())]
    if not rows or not columns:
        raise DataError(f"the models {', '.join(models)} share no {'perturbation' if rows else 'dataset'}")
    groups = tuple(analysis.groups.get(name, "") for name in rows)
    with style.styled():
        import matplotlib
        from matplotlib.figure import Figure

        down = -(-len(models) // ACROSS)
        height = 0.9 + down * (0.75 + 0.15 * len(rows))
        figure = Figure(figsize=(max(style.PAGE, 2.0 + 2 * 0.27 * len(columns)), height), layout="constrained")
        panels = figure.subplots(down, ACROSS, squeeze=False)
        colours = matplotlib.colormaps[DIVERGING].with_extremes(bad=style.PALE)
        looks = group_colours(tuple(name for name in groups if name))
        image = None
        for place, axes in enumerate(panels.flat):
            _bare(axes)
            axes.set_yticks([])
            axes.set_xticks([])
            if place >= len(models):
                axes.set_axis_off()
                continue
            name, own = list(models.items())[place]
            values = own.select(rows, columns).values
            image = axes.imshow(values, cmap=colours, vmin=-LIMIT, vmax=LIMIT, aspect="auto")
            axes.set_title(f"({'abcdefghijklmnopqrstuvwxyz'[place % 26]}) {name}", loc="left", fontsize=7.5)
            if place % ACROSS == 0:
                axes.set_yticks(range(len(rows)), rows)
                for label, group in zip(axes.get_yticklabels(), groups, strict=True):
                    label.set_color(looks[group][0] if group else style.INK)
            if place < ACROSS:
                axes.set_xticks(range(len(columns)), columns, **SLANTED)
            axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, pad=2, labelsize=6)
            if len(rows) <= MOST_ROWS:
                _write_cells(axes, values)
            _separate([axes], groups)
        assert image is not None
        _colourbar(figure, image, list(panels.flat))
        return figure
