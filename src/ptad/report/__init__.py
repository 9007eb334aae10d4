"""The HTML report of a table, and figures of a detector.

:func:`write_report` makes one self-contained page; :mod:`ptad.report.plot` holds the matplotlib figures.
"""

from ptad.report.content import ReportSettings
from ptad.report.writing import write_report

__all__ = ["ReportSettings", "write_report"]
