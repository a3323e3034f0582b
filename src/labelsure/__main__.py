"""``python -m labelsure`` is ``labelsure``."""

import sys

from labelsure.cli._app import main

if __name__ == "__main__":
    sys.exit(main())
