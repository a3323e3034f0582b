"""Tables: data sets, files in and files out, column roles, scoring runs.

May depend on `model` and what is below it.
"""
