"""1/u as a sum of powers: its error at every denominator, and how many terms it takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelsure.distributions._reciprocals import LARGEST_ERROR, sum_of_powers


def largest_error(first, last):
    """Of the sum for 1/u, times the first denominator."""
    t, c = sum_of_powers(first, last)
    errors = []
    for u in range(first, last + 1):
        total = 0.0
        for node, coefficient in zip(t.tolist(), c.tolist(), strict=True):
            total += coefficient * node ** (u - first)
        errors.append(abs(total - 1 / u))
    return first * max(errors)


@given(st.integers(1, 60), st.integers(0, 120))
def test_the_sum_is_the_reciprocal(first, more):
    # A sum may have been found for a first denominator that is smaller by a quarter.
    assert largest_error(first, first + more) <= 1.3 * LARGEST_ERROR


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 400), (3, 2000), (300, 310), (700, 2000)])
def test_the_sum_of_many_denominators(first, last):
    assert largest_error(first, last) <= 1.3 * LARGEST_ERROR


@pytest.mark.parametrize(
    ("first", "last", "most"), [(1, 174, 35), (10, 174, 24), (40, 174, 14), (1, 10, 5), (9, 10, 1)]
)
def test_few_terms_are_enough(first, last, most):
    """Gauss-Legendre would take half as many as there are denominators."""
    assert len(sum_of_powers(first, last)[0]) <= most
