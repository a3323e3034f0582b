"""Compiled kernels: plain arrays in, plain arrays out.

A kernel checks nothing, draws no random numbers and handles the rows `start` to `stop` of a
batch, each row by itself and in a fixed order: results do not depend on the number of threads.
Each file opens with its layout, what each kernel computes, the algorithm, its cost and its error;
formulas are in `docs/understand/mathematics.md`. `compiling` compiles and caches, `threads`
runs. May depend on `_runtime` and `errors`.
"""
