"""The settings of a detector: its terms, its reference rows, its calibration; and the presets.

A preset is a list of terms. Settings of the machine (device, verbosity) and of the decision (false-alarm rate) are
parameters of :class:`ptad.PTAD` instead: they do not change what is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ptad.arrays import Matrix
from ptad.calibration import CalibrationSettings
from ptad.errors import BundleError, SettingError
from ptad.layout import Anything, MappingOf, Record, damaged, printable
from ptad.paper.settings import NetworkSettings
from ptad.reference import ReferenceSettings
from ptad.settings import Settings
from ptad.terms.base import TermSettings
from ptad.terms.local_reconstruction import LocalReconstructionSettings
from ptad.terms.missing_values import MissingValuesSettings
from ptad.terms.nearest_row import NearestRowSettings
from ptad.terms.pretrained import PretrainedSettings
from ptad.terms.rare_pair import RarePairSettings
from ptad.terms.tail_probability import TailProbabilitySettings
from ptad.terms.unmatched_columns import UnmatchedColumnsSettings
from ptad.terms.unseen_category import UnseenCategorySettings

_GROUP = MappingOf(Anything())  # a group of settings checks its values when it is made


@dataclass(frozen=True)
class Config:
    """All settings of a detector. A setting is named by its group and a dot: ``local_reconstruction.ridge``.

    Parameters
    ----------
    terms : tuple of TermSettings
        The additive parts of the score, each with its weight.
    reference : ReferenceSettings
        Which training rows a model keeps, and how rows are compared with them.
    calibration : CalibrationSettings
        Which rows give the threshold.
    """

    terms: tuple[TermSettings, ...]
    reference: ReferenceSettings = field(default_factory=ReferenceSettings)
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)

    def groups(self) -> Iterator[Settings]:
        """Return all groups of settings."""
        yield from self.terms
        yield self.reference
        yield self.calibration

    @property
    def weights(self) -> Matrix:
        """The weights of the terms, (n_terms,)."""
        return np.array([term.weight for term in self.terms])

    def replace(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with some settings changed.

        Parameters
        ----------
        changes : mapping of dotted name to value
            Such as ``{"local_reconstruction.ridge": 0.1}``. An unknown name or a value out of range is an error.

        Returns
        -------
        Config
            The changed copy.
        """
        by_group: dict[str, dict[str, Any]] = {}
        known = {group.title(): group for group in self.groups()}
        for key, value in changes.items():
            group, dot, name = str(key).partition(".")
            if not dot or group not in known:
                raise SettingError(
                    f"There is no setting '{key}'. A setting is named by its group and a dot, such as "
                    f"'{next(iter(known))}.weight'; groups of this preset: {', '.join(known)}."
                )
            by_group.setdefault(group, {})[name] = value
        return replace(
            self,
            terms=tuple(term.replace(by_group.get(term.title(), {})) for term in self.terms),
            reference=self.reference.replace(by_group.get("reference", {})),
            calibration=self.calibration.replace(by_group.get("calibration", {})),
        )

    def to_json(self) -> dict[str, Any]:
        """Return all settings as plain JSON types, group by group.

        Returns
        -------
        dict
            The groups ``terms``, ``reference`` and ``calibration``.
        """
        return {
            "terms": {term.title(): term.to_json() for term in self.terms},
            "reference": self.reference.to_json(),
            "calibration": self.calibration.to_json(),
        }

    def by_name(self) -> dict[str, Any]:
        """Return all settings as plain JSON types, by dotted name, as :meth:`replace` takes them.

        Returns
        -------
        dict
            Such as ``{"local_reconstruction.ridge": 0.1, ...}``.
        """
        return {f"{group.title()}.{k}": v for group in self.groups() for k, v in group.to_json().items()}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Read back what :meth:`to_json` wrote.

        Parameters
        ----------
        content : dict
            What :meth:`to_json` returned.

        Returns
        -------
        Config
            The same settings.
        """
        known = {type(term).title(): type(term) for preset in PRESETS.values() for term in preset.terms}
        groups = {"terms": MappingOf(_GROUP), "reference": _GROUP, "calibration": _GROUP}
        Record(groups).check(content, "its manifest.config")
        if not content["terms"]:
            raise damaged("its manifest.config.terms", "at least one term")
        try:
            terms = tuple(known[name](**values) for name, values in content["terms"].items())
            reference = ReferenceSettings(**content["reference"])
            return cls(terms, reference, CalibrationSettings(**content["calibration"]))
        except (KeyError, TypeError, SettingError) as error:
            reason = printable(str(error).rstrip("."))
            raise BundleError(f"The settings of the model are damaged: {reason}. Fit again.") from error


PRESETS: dict[str, Config] = {
    "default": Config(
        terms=(
            LocalReconstructionSettings(weight=3.0),
            NearestRowSettings(weight=3.0),
            UnmatchedColumnsSettings(weight=2.0),
            TailProbabilitySettings(weight=1.0),
            RarePairSettings(weight=0.75),
            MissingValuesSettings(weight=0.5),
            UnseenCategorySettings(weight=1.0),
            PretrainedSettings(weight=3.0),
        )
    ),
    "paper": Config(
        terms=(NetworkSettings(),), calibration=CalibrationSettings(split_from=2_000, folds=5, most_folds=5)
    ),
}


def make_config(preset: str, changes: Mapping[str, Any] | Config | None = None) -> Config:
    """Return a preset with some settings changed."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise SettingError(f"There is no preset {preset!r}. Choose one of: {', '.join(PRESETS)}.")
    if isinstance(changes, Config):
        return changes
    return PRESETS[preset].replace(changes or {})
