# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
# ---

# %% [markdown]
# # Text: which documents can be tagged without review?
#
# Debian's volunteers tag packages by hand: what a program is used for, what it works with, its
# field. A classifier reads the descriptions. **Which packages can it tag without review, if the
# tags that go out must have a mean F1 of at least 0.8?**
#
# Data: Debian's package lists (descriptions and tags, on any Debian machine with access to its
# archive), read by `debian_packages.py` beside this page.

# %%
from collections import Counter

import numpy as np
import pandas as pd
from debian_packages import read_packages
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

import labelsure as ls

FACETS = ("use::", "works-with::", "field::")
packages = read_packages()
if packages is None:
    print("No Debian package lists here: handwritten digits take their place.")

# %% [markdown]
# Labels are the 26 most frequent tags that say what a program does. Packages without any of them
# are left out.

# %%
if packages is not None:
    wanted = packages["tags"].map(
        lambda tags: [t for t in tags if t.startswith(FACETS)]
    )
    counted = Counter(t for tags in wanted for t in tags)
    frequent = [tag for tag, _ in counted.most_common(26)]
    kept = wanted.map(lambda tags: [t for t in tags if t in frequent])
    packages, kept = packages[kept.str.len() > 0], kept[kept.str.len() > 0]
    X, names = packages["text"], sorted(frequent)
    Y = pd.DataFrame(
        [[t in tags for t in names] for tags in kept], X.index, names
    ).astype(int)
    clf = make_pipeline(
        TfidfVectorizer(min_df=3, sublinear_tf=True, stop_words="english"),
        MultiOutputClassifier(LogisticRegression(C=10)),
    )
else:
    digits = ls.load_dataset("digits")
    X, names = digits.X, list(digits.label_names)
    Y = pd.DataFrame(digits.Y, X.index, names)
    clf = make_pipeline(MultiOutputClassifier(LogisticRegression(max_iter=500)))
print(
    f"{len(X):,} rows, {len(names)} labels, {Y.to_numpy().sum(axis=1).mean():.2f} labels a row"
)

# %% [markdown]
# Half of the rows train the classifier, a quarter calibrates labelsure, the rest is new. The
# decisions maximise expected F1: a threshold of 0.5 misses many tags, because rare tags seldom
# reach it.

# %%
order = np.random.default_rng(0).permutation(len(X))
train, cal, new = np.split(order, [len(X) // 2, 3 * len(X) // 4])
clf.fit(X.iloc[train], Y.iloc[train])
target = 0.8 if packages is not None else 0.9
model = ls.AccuracyAwareClassifier(
    FrozenEstimator(clf), "f1", target=target, random_state=0
)
model.fit(X.iloc[cal], Y.iloc[cal])
print(model.summary_)

# %% [markdown]
# ## New packages
#
# Estimated without their tags:

# %%
print(model.estimate(X.iloc[new]))
table = model.assess(X.iloc[new]).to_frame()
table[["predicted", "estimated_accuracy", "accept"]].sort_values(
    "estimated_accuracy"
).iloc[[0, -1]]

# %% [markdown]
# ## Check against the true tags
#
# The tags that people gave were not used in any step above:

# %%
truth = Y.iloc[new].to_numpy()
accept = table["accept"].to_numpy()
f1 = ls.accuracy(truth, model.predict(X.iloc[new]), "f1")
half = ls.accuracy(truth, clf.predict(X.iloc[new]), "f1")
print(f"mean F1 of the model's own predict (0.5 thresholds): {half.mean():.3f}")
print(f"actual mean F1 of labelsure's decisions:             {f1.mean():.3f}")
print(f"accepted: {accept.mean():.1%}, mean F1 {f1[accept].mean():.3f}")
print(f"referred: {1 - accept.mean():.1%}, mean F1 {f1[~accept].mean():.3f}")

# %%
curve = ls.accept_curve(table["estimated_accuracy"].to_numpy(), f1)
axes = curve.plot(target=target)

# %% [markdown]
# ## Decision
#
# The accepted packages go out without review. The guarantee holds at 95% confidence for packages
# from the same population. The others go to a person, the most doubtful first. If new packages are of another
# kind, `model.estimate` warns; labelling fifty random rows then gives a valid estimate
# ([shift](../howto/shift.md)).
