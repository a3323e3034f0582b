"""Services of every layer, without labelsets: types, limits, processes, files, plots, pages.

May depend on `errors` alone.
"""
