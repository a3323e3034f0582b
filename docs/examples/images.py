# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
# ---

# %% [markdown]
# # Images: which traits are certain, which need a second look?
#
# Handwritten digits (scikit-learn's, 8 by 8 pixels) have traits that several digits share: even,
# prime, at least five, a loop, a straight stroke. A sorting machine acts on traits. **For which
# images can it act at once, and which traits must a person look at?**

# %%
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier

import labelsure as ls

digits = ls.load_dataset("digits")
names = np.array(digits.label_names)
train, rest = ls.split_dataset(digits, 0.85, random_state=1)
cal, new = ls.split_dataset(rest, 0.5, random_state=1)
clf = MLPClassifier(200, alpha=0.1, max_iter=500, random_state=0).fit(
    train.X, train.Y
)
model = ls.AccuracyAwareClassifier(
    FrozenEstimator(clf), "exact", region=0.95, random_state=0
)
model.fit(cal.X, cal.Y)
print(model.estimate(new.X))
print(f"actual exact match: {model.score(new.X, new.Y):.3f}")

# %% [markdown]
# ## Prediction sets
#
# Conformal prediction sets with a nominal coverage of 95%. A trait is *certain*
# if all labelsets of the prediction set have it, *excluded* if none has it, and *open* otherwise.

# %%
region = model.predict_region(new.X)
covered = region.contains(new.Y)
print(f"coverage {covered.mean():.3f}")
print(f"open traits: {region.n_open.mean():.2f} of {len(names)} on average")
print(f"images without an open trait: {(region.n_open == 0).mean():.1%}")

# %%
order = np.argsort(region.n_open, kind="stable")
shown = order[np.linspace(0, len(order) - 1, 8).astype(int)]
figure, axes = plt.subplots(2, 4, figsize=(10, 7))
for ax, row in zip(axes.flat, shown, strict=True):
    ax.imshow(new.X.to_numpy()[row].reshape(8, 8), cmap="gray_r")
    certain = ", ".join(names[region.is_certain[row]]) or "none"
    undecided = ", ".join(names[region.is_open[row]]) or "none"
    title = [fill(f"certain: {certain}", 28), fill(f"open: {undecided}", 28)]
    ax.set_title("\n".join(title), fontsize=9)
    ax.axis("off")
figure.tight_layout()

# %% [markdown]
# ## Abstention on single traits
#
# Suppose that asking a person about one trait costs a fifth of acting on a wrong one. Then leave open
# every trait whose prediction is wrong with probability above 0.2 (partial abstention under Hamming).

# %%
partial = model.assess(new.X).leave_open(0.2)
hamming = partial.accuracy(new.Y, "hamming")
print(f"{partial.is_open.mean():.1%} of traits left open")
print(f"accuracy of the decided traits {np.nanmean(hamming):.3f}")
decided = ls.accuracy(new.Y, model.predict(new.X), "hamming")
print(f"accuracy if all are decided    {decided.mean():.3f}")

# %% [markdown]
# ## Decision
#
# The machine acts at once on images without an open trait. For the others a person looks at the
# open traits only. Coverage holds on average over images like the calibration set; it does not
# hold for a single image, nor for another scanner.
