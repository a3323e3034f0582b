"""The command line: each command checks its options and makes one library call.

May depend on every layer.
"""

from labelsure.cli._app import main

__all__ = ["main"]
