"""How kernels are compiled."""

from __future__ import annotations

from typing import Any

PLAIN: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}
"""For every kernel: other threads run meanwhile, and a division needs no check for zero."""

FAST: dict[str, Any] = {**PLAIN, "fastmath": {"reassoc", "contract", "nsz"}}
"""For sums: the compiler may reorder them (once, when it compiles) and fuse multiply-adds, which
lets loops vectorise. NaN and infinity keep their meaning."""
