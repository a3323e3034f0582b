"""What every room needs and knows nothing of labelsets: types, limits, processes, files, plots.

May depend on `errors` alone.
"""
