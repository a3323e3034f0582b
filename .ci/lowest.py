"""Print pip constraints with the lowest versions that pyproject.toml admits.

`.ci/lowest` installs them and runs tests with them.

Core dependencies are pinned to their floors. Extras are not: some of their packages ask for newer
versions of the core than the core does.
"""

import re
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)(?:,<[\w.]+)?")


def main() -> None:
    """Print one line for each package."""
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8")
    floors = {}
    for requirement in tomllib.loads(text)["project"]["dependencies"]:
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise SystemExit(f"Each requirement must be name>=version, got {requirement!r}.")
        floors[match[1]] = match[2]
    for name, version in sorted(floors.items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
