"""macrOData: hundreds of tables with a fixed split, in two groups."""

from __future__ import annotations

from ptad.benchmark.folder_collection import Collection


class MacroCollection(Collection):
    """OddBench (``odd_*``, semantic anomalies) and OvRBench (``ovr_*``, one class against the rest)."""

    seeds = "0"  # the split is fixed
    subfolder = "macro"
    origin = (
        "macrOData (Ding et al., 2026): OddBench and OvRBench from the public repository psorus/Outformer, one .npz "
        "per table with train, test and y, in the folder 'macro' of the data folder."
    )

    @staticmethod
    def group(table: str) -> str:
        """``odd`` or ``ovr``."""
        return table.partition("_")[0]
