"""Compiled kernels: plain arrays in, plain arrays out.

A kernel checks nothing, draws no random numbers and handles the rows ``start`` to ``stop`` of a
batch, each row by itself and in a fixed order: results do not depend on the number of threads.
Kernels that call each other live in one file, because numba's cache on disk does not notice a
change in another one.
"""
