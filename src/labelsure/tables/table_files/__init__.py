"""Tables in files of any size: cut into units of some rows, which are read one at a time."""

from labelsure.tables.table_files._file_kind import VALUE_COLUMN, Unit
from labelsure.tables.table_files._units import UNIT_ROWS, list_units, read_table, read_unit

__all__ = ["UNIT_ROWS", "VALUE_COLUMN", "Unit", "list_units", "read_table", "read_unit"]
