"""The command line: thin commands, one library call each.

Nothing heavy is imported before a command needs it, so that ``labelsure --help`` is there at once.
"""

from labelsure.cli._app import main

__all__ = ["main"]
