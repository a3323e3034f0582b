# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
# ---

# %% [markdown]
# # LLM answers: which tickets can go out without review?
#
# An LLM tags tickets. Each ticket is sent five times, so it has five answers: lists of tags that
# agree more or less. **Which tickets can be tagged without a person, if the tags that go out must have a
# mean F1 of at least 0.85?**
#
# We have no public set of sampled answers. **The answers here are simulated**: a classifier of
# scikit-learn's digits, fitted to 200 of them, stands in for the LLM, images for tickets, five
# traits of the digit for tags. Answers are drawn from its joint distribution at temperature 0.6,
# so that they agree more often than they are right: they are overconfident, like many LLMs. The code
# needs no extra.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import labelsure as ls

data = ls.load_dataset("digits")
tags = list(data.label_names)
rng = np.random.default_rng(0)
train, tickets = np.split(rng.permutation(len(data.Y)), [200])

stand_in = ls.EnsembleOfClassifierChains(n_chains=5, random_state=0)
stand_in.fit(data.X.iloc[train], data.Y[train])
joint = stand_in.predict_distribution(data.X.iloc[tickets]).temper(0.6)
draws = joint.sample(5, random_state=0)
answers = [
    [[tags[j] for j in np.flatnonzero(draw)] for draw in row] for row in draws
]

# %% [markdown]
# ## Answers as they come
#
# Some calls fail, some answers are not lists, some tags do not exist. labelsure leaves them out,
# counts them and warns.

# %%
for i in range(0, len(answers), 40):
    answers[i][0] = None
for i in range(7, len(answers), 60):
    answers[i][1] = "I am sorry, I cannot tag this ticket."
for i in range(11, len(answers), 90):
    answers[i][2] = [*answers[i][2], "Miscellaneous"]
truth = pd.DataFrame(np.asarray(data.Y)[tickets], columns=tags)
print(answers[0])

# %% [markdown]
# ## Calibrate with 300 labelled tickets
#
# They must be a random sample: tickets that were labelled because they looked doubtful would bias
# every number. Half of them fit the accuracy estimator, the other half test the threshold. With 200
# tickets the test has 100 rows, and whether anything is accepted depends on the sample.

# %%
model = ls.AccuracyAwareClassifier(
    ls.PrecomputedProbabilities("votes"),
    metric="f1",
    target=0.85,
    random_state=0,
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(answers[:300], truth[:300])
print(caught[0].message)
print(model.recalibration_)
print(model.policy_)

# %% [markdown]
# ## Which tickets to accept

# %%
warnings.simplefilter("ignore", ls.errors.UnseenValuesWarning)  # shown above
new, Y_new = answers[300:], truth[300:].to_numpy()
found = model.assess(new)
f1 = ls.accuracy(Y_new, found.Y_pred, "f1")
accepted = found.accepted
print(f"accepted: {accepted.mean():.1%}, mean F1 {f1[accepted].mean():.3f}")
print(f"actual mean F1 of all: {f1.mean():.3f}")
print(model.estimate(new))

# %% [markdown]
# ## Compared with the share of agreeing answers
#
# The usual confidence is the share of answers that equal the most frequent one. It measures
# agreement, not accuracy. Each point is an eighth of the tickets.

# %%
votes = ls.LabelsetTable.from_samples(new, tags)
share = votes.top(1).probabilities[:, 0]
scores = {"share of agreeing answers": share, "labelsure": found.accuracy}
figure, ax = plt.subplots(figsize=(5, 5))
for name, score in scores.items():
    bins = np.array_split(np.argsort(score, kind="stable"), 8)
    means = [(score[rows].mean(), f1[rows].mean()) for rows in bins]
    ax.plot(*np.transpose(means), "o-", label=name)
    print(f"{name}: squared error {np.mean((score - f1) ** 2):.3f}")
ax.plot([0, 1], [0, 1], color="gray", linewidth=1)
ax.set_xlabel("estimated F1")
ax.set_ylabel("actual mean F1")
ax.legend()
figure.tight_layout()

# %% [markdown]
# ## Decision
#
# Accepted tickets go out. The others go to people, who see the suggested tags. Each week 50 random
# tickets are labelled (`model.draw_audit`), and `model.estimate` shows whether mean F1 has changed.
