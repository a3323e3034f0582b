"""Tables in files of any size: cut into units of some rows, which are read one at a time."""

from labelsure.tables.table_files._file_kind import Unit
from labelsure.tables.table_files._units import list_units, read_table, read_unit

__all__ = ["Unit", "list_units", "read_table", "read_unit"]
