"""Any table in, float matrix out: reading, schema, encoding, writing."""

from ptad.tables.bad_cells import BadCells, BadCellsWarning
from ptad.tables.conversion import same_kind, same_series
from ptad.tables.database import Query
from ptad.tables.reading import TableScan, TableSource, read_table, scan_table
from ptad.tables.schema import Schema
from ptad.tables.schema_fit import fit_schema
from ptad.tables.writing import TableWriter, write_table

__all__ = [
    "BadCells",
    "BadCellsWarning",
    "Schema",
    "fit_schema",
    "read_table",
    "scan_table",
    "TableScan",
    "TableSource",
    "Query",
    "write_table",
    "TableWriter",
    "same_kind",
    "same_series",
]
