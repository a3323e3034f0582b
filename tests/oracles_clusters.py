"""Clusters of dependent rows, as loops."""

from __future__ import annotations


def outcomes(values, clusters, target, size):
    """One outcome of each cluster, in order of first appearance; missing rows are at the target."""
    found = {}
    for value, cluster in zip(values, clusters, strict=True):
        found.setdefault(cluster, []).append(value)
    return [(sum(own) + (size - len(own)) * target) / size for own in found.values()]


def first_rows(clusters, most):
    """Positions of rows before which fewer than `most` of their cluster came."""
    seen, rows = {}, []
    for row, cluster in enumerate(clusters):
        seen[cluster] = seen.get(cluster, 0) + 1
        if seen[cluster] <= most:
            rows.append(row)
    return rows


def design_effect(residuals, clusters):
    """Squares of cluster sums by squares of rows, each divided by its number less one."""
    sums = {}
    for residual, cluster in zip(residuals, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + residual
    n, k, squares = len(residuals), len(sums), sum(r**2 for r in residuals)
    if squares == 0 or k == 1 or n == 1:
        return 1.0
    between = sum(s**2 for s in sums.values()) * k / (k - 1)
    return max(1.0, between / (squares * n / (n - 1)))
