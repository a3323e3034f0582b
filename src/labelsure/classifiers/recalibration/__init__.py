"""Recalibration: distributions that are fitted to labelled rows, and kept if a gate lets them pass.

One module each: the base class with its gate, five recalibrations, and the classifier that fits
one to out-of-fold predictions of any model. Formulas: `docs/understand/mathematics.md`,
"Temperature and label-wise calibration".
"""
