"""Tables: data sets, files in and files out, column roles, scoring runs.

May depend on `model` and what is below it. Data sets are read without loading scikit-learn, so that
the readers of models are imported when they are first used.
"""

from importlib import import_module

__all__ = ["PredictionColumns", "TableColumns", "score_dask", "score_frame", "score_schema"]

_HOMES = {
    "PredictionColumns": "inputs",
    "TableColumns": "inputs",
    "score_dask": "scoring",
    "score_frame": "scoring",
    "score_schema": "scoring",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelsure.tables' has no attribute {name!r}")
    return getattr(import_module(f"labelsure.tables.{_HOMES[name]}"), name)
