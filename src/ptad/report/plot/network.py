"""Figures of the paper's network: training losses, masks, prototypes and the P-space."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptad.errors import DataError, SettingError
from ptad.model import Model
from ptad.report.numbers import count_text
from ptad.report.plot import canvas

# of Okabe and Ito, for readers with colour blindness
_COLOURS = {"reconstruction": "#0072b2", "basis": "#009e73", "prototype": "#e69f00", "orthogonality": "#cc79a7"}


def network_of(model: Model, figure: str) -> Any:
    """Return the network of a detector of the ``paper`` preset; other detectors have none to draw."""
    model._check_fitted()
    for settings, term in zip(model.config_.terms, model.detector_.pipeline.terms, strict=True):
        if settings.title() == "network":
            return term
    raise SettingError(
        f"{figure} show the paper's network, which this model does not have: it was fitted with the preset "
        f"{model.preset!r}. Fit with PTAD(preset='paper')."
    )


def encoded_names(model: Model, term: Any) -> list[str]:
    """Return a name for every input of the network, which has one for each category."""
    schema, names = model.schema_, []
    for place, code in zip(term.encoding.source.tolist(), term.encoding.code.tolist(), strict=True):
        column = schema.columns[schema.features.column[place]]
        if code == code:
            names.append(f"{column.name}={[*column.values, 'unseen'][int(code)]}")
        else:
            names.append(schema.encoded_names[place])
    return names


class NetworkPlots:
    """Figures of a model of the ``paper`` preset, which is ``_model``."""

    _model: Model

    def history(self, *, ax: Any = None) -> Any:
        """Draw the training losses of the ``paper`` preset.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        model = self._model
        network_of(model, "Training losses")
        ax = canvas.one_axes(ax, (7.0, 3.8))
        steps = [entry["step"] for entry in model.history_]

        def line(key: str, label: str, **style: Any) -> None:
            values = np.array([entry.get(key, np.nan) for entry in model.history_], dtype=np.float64)
            values[values <= 0] = np.nan  # a part that is switched off is 0, which a logarithm cannot show
            if not np.isnan(values).all():
                ax.plot(steps, values, label=label, **style)

        for part, colour in _COLOURS.items():
            line(part, part, color=colour, linewidth=1.1, alpha=0.9)
        line("total", "total", color=canvas.INK, linewidth=2.0)
        line("held_out", "held-out rows", color=canvas.ANOMALY, linewidth=1.6, linestyle="--")
        ax.set_yscale("log")
        ax.set(xlabel="training step", ylabel="loss (log scale)")
        canvas.bare(ax, grid="both")
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        return ax

    def masks(self, X: Any, normal: int | None = None, anomaly: int | None = None, *, ax: Any = None) -> Any:
        """Draw what the network of the ``paper`` preset masks in a normal row and in an anomaly.

        Parameters
        ----------
        X : table or array
            Rows to choose from.
        normal : int, optional
            The normal row, counted from 0. Without it, of the rows with a score below the median, the one whose average
            masking rate is nearest to that of the anomaly, as the paper does.
        anomaly : int, optional
            The anomalous row, counted from 0. Without it, the one with the highest score.
        ax : array of 2 x 2 matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        array of matplotlib axes
            What was drawn on, 2 x 2.
        """
        model = self._model
        rates, data_mask = network_of(model, "Masks").masks(model.schema_.encode(X))
        scores = np.asarray(model.anomaly_score(X))
        if len(rates) < 2:
            raise DataError("There is 1 row. Give at least 2: the figure compares a normal row with an anomaly.")
        if anomaly is None:
            anomaly = int(np.argmax(scores))
        if normal is None:
            away = np.abs(rates.mean(axis=1) - rates[anomaly].mean())
            away[scores > np.median(scores)] = np.inf
            away[anomaly] = np.inf
            normal = int(np.argmin(away))
        for number in (normal, anomaly):
            if not -len(rates) <= number < len(rates):
                raise DataError(f"There is no row {number}: X has {len(rates)} rows, counted from 0.")
        names = model.schema_.names
        width = min(max(7.0, 2.0 + 0.32 * len(names)), 16.0)
        axes = canvas.grid_of_axes(ax, (2, 2), (width, 5.6), sharex=True, sharey="row")
        sides = ((normal, f"normal row {normal}", canvas.NORMAL), (anomaly, f"anomalous row {anomaly}", canvas.ANOMALY))
        for (rate, soft), (row, title, colour) in zip(axes.T, sides, strict=True):
            mean = float(rates[row].mean())
            rate.bar(range(len(names)), rates[row], color=colour, width=0.8)
            rate.axhline(mean, color="black", linewidth=0.8, linestyle=":")
            rate.set_title(f"{title}\n{100.0 * mean:.0f} % of its latent space is masked", fontsize="medium")
            soft.bar(range(len(names)), data_mask[row], color=colour, width=0.8, alpha=0.75)
            canvas.name_ticks(soft.xaxis, names, rotation=90, fontsize="x-small")
            soft.set_xlim(-0.6, len(names) - 0.4)
            canvas.bare(rate, grid="y")
            canvas.bare(soft, grid="y")
        axes[0, 0].set_ylabel("P-space masking rate")
        axes[1, 0].set_ylabel("soft mask")
        axes[1, 0].set_ylim(0.0, 1.0)
        return axes

    def prototypes(self, *, ax: Any = None) -> Any:
        """Draw the basis vectors and association prototypes of the ``paper`` preset.

        A basis vector is shown as the length of its part that belongs to each column; where the P-space is one of whole
        rows (the backbone ``mlp``), as how far the row that it decodes to lies from the centre in each column.

        Parameters
        ----------
        ax : array of matplotlib axes, optional
            Where to draw, one per panel. Without it, a new figure is made.

        Returns
        -------
        array of matplotlib axes
            What was drawn on, one per panel.
        """
        model = self._model
        term = network_of(model, "Prototypes")
        panels = [("basis vector", term.basis_strength, "strength", "viridis")]
        if term.prototypes is not None:
            panels.append(("prototype", term.prototypes, "attention", "RdBu_r"))
        names = encoded_names(model, term)
        n_rows = sum(len(values) for _, values, _, _ in panels)
        size = (min(max(7.0, 2.0 + 0.28 * len(names)), 16.0), 2.2 + 0.3 * n_rows)
        axes = canvas.grid_of_axes(ax, (len(panels), 1), size, sharex=True)
        for drawn, (label, values, measure, colours) in zip(axes[:, 0], panels, strict=True):
            limit = float(np.abs(values).max(initial=1e-12))
            low = -limit if colours == "RdBu_r" else 0.0  # attention vectors have a sign: white is none
            image = drawn.imshow(values, aspect="auto", cmap=colours, vmin=low, vmax=limit)
            drawn.set_yticks(range(len(values)), [f"{i}" for i in range(len(values))], fontsize="small")
            drawn.set_ylabel(label)
            drawn.tick_params(length=0)
            drawn.spines[:].set_visible(False)
            bar = drawn.figure.colorbar(image, ax=drawn, pad=0.01)
            bar.set_label(measure, fontsize="small")
            bar.outline.set_visible(False)
        canvas.name_ticks(axes[-1, 0].xaxis, names, rotation=90, fontsize="small")
        return axes

    def projection(self, X: Any, labels: Any = None, *, ax: Any = None) -> Any:
        """Draw rows and basis vectors in the main plane of the P-space of the ``paper`` preset.

        Parameters
        ----------
        X : table or array
            Rows to project.
        labels : array of shape (n_rows,), optional
            True or 1 for known anomalies; the points are coloured by them instead of by the threshold.
        ax : matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        from sklearn.decomposition import PCA

        model = self._model
        term, detector = network_of(model, "Projections"), model.detector_
        rows = model.schema_.encode(X)
        reference = detector.pipeline.transform(detector.reference[term.reference_index])
        if min(reference.shape) < 2:
            raise DataError("A view of the P-space needs at least two reference rows and two dimensions.")
        # the sign of PCA is arbitrary, but svd_solver="full" makes it the same every time
        plane = PCA(n_components=2, svd_solver="full").fit(reference.astype(np.float64))
        red = np.zeros(len(rows), dtype=bool)
        if labels is not None:
            red = canvas.known_anomalies(labels, len(rows))
        elif detector.calibration is not None:
            red = detector.scores(rows) > -model.offset_
        points = plane.transform(detector.pipeline.transform(rows))
        ax = canvas.one_axes(ax, (6.4, 5.0))
        vectors = plane.transform(term.basis_vectors)
        flat, gold = {"linewidths": 0}, {"color": "#f2b705", "edgecolors": canvas.INK, "linewidths": 0.8}
        normal, anomalous = (
            f"normal: {count_text(int((~red).sum()), 'row')}",
            f"anomalous: {count_text(int(red.sum()), 'row')}",
        )
        ax.scatter(*plane.transform(reference).T, s=14, color=canvas.QUIET, label="reference rows", **flat)
        ax.scatter(*points[~red].T, s=14, color=canvas.NORMAL, alpha=0.7, label=normal, **flat)
        ax.scatter(
            *points[red].T, s=34, marker="^", color=canvas.ANOMALY, alpha=0.85, zorder=2.5, label=anomalous, **flat
        )
        ax.scatter(*vectors.T, s=150, marker="*", label="basis vectors", zorder=3, **gold)
        first, second = 100.0 * plane.explained_variance_ratio_
        ax.set(xlabel=f"first principal axis of the P-space ({first:.0f} %)")
        ax.set(ylabel=f"second principal axis ({second:.0f} %)")
        canvas.bare(ax)
        ax.legend(frameon=False, fontsize="small")
        return ax
