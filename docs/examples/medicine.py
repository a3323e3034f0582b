# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
# ---

# %% [markdown]
# # Medicine: few labelled cases, rare codes, a change of prevalence
#
# A hospital assigns diagnosis codes to reports and has labelled 300 of them. **What precision and
# recall does the classifier have for each code, and does that still hold when another ward sends
# its reports?**
#
# Data: `medical` (978 radiology reports, 45 ICD-9 codes) if it is in the folder `LABELSURE_DATA`;
# otherwise Yeast, genes and their functions, stands in. Both need `pip install "labelsure[study]"`.

# %%
import os
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import labelsure as ls

try:
    if not os.environ.get("LABELSURE_DATA"):
        raise ls.DataError("LABELSURE_DATA names no folder")
    data = ls.load_dataset("medical")
except ls.LabelsureError as error:
    print(f"Yeast stands in for medical: {error}")
    data = ls.load_dataset("yeast")
frequent = np.asarray(data.Y.sum(axis=0)).ravel() >= 10
data = data.select_labels(list(np.array(data.label_names)[frequent]))
print(data)

# %% [markdown]
# With 300 labelled cases there are too few to hold many out, so the classifier is cross-fitted
# (`cv=5`). Its estimates are those of models trained on 80% of the cases: slightly pessimistic.

# %%
known, new = ls.split_dataset(data, len(data) - 300, random_state=0)
base = MultiOutputClassifier(
    LogisticRegression(C=1, max_iter=500, class_weight="balanced")
)
with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore", ls.ProbabilityWarning
    )  # codes that no case of a fold has
    model = ls.AccuracyAwareClassifier(base, "f1", cv=5, random_state=0).fit(
        known.X, known.Y
    )
    print(model.estimate(new.X))
    print(f"actual mean F1: {model.score(new.X, new.Y):.3f}")

# %% [markdown]
# ## Code by code
#
# Precision and recall of each code with 95% intervals, without labels of the new reports. Rare
# codes have wide intervals, because 300 cases contain few examples of them.

# %%
table = model.estimate_labels(new.X)
table = table.sort_values("n_true", ascending=False)
table[
    ["n_predicted", "precision", "precision_low", "precision_high", "recall"]
].head(8).round(2)

# %%
Y_new, Y_pred = np.asarray(new.Y), model.predict(new.X)
hits = (Y_new * Y_pred).sum(axis=0)
actual = hits / np.maximum(Y_pred.sum(axis=0), 1)
often = Y_pred.sum(axis=0) >= 20
rows = table.loc[np.array(data.label_names)[often]]
inside = (rows["precision_low"] <= actual[often]) & (
    actual[often] <= rows["precision_high"]
)
print("codes that are predicted 20 times or more:")
print(f"actual precision inside the interval for {inside.sum()} of {len(rows)}")

# %% [markdown]
# ## A simulated change of prevalence
#
# Another ward: reports with the most frequent code become three times as frequent. This is a
# simulation, by resampling the new reports.

# %%
top = int(np.argmax(Y_new.sum(axis=0)))
weights = np.where(Y_new[:, top] == 1, 3.0, 1.0)
rows = np.random.default_rng(0).choice(
    len(Y_new), 500, p=weights / weights.sum()
)
ward = new.take(rows)
before, after = Y_new[:, top].mean(), ward.Y[:, top].mean()
print(f"prevalence of {data.label_names[top]}: {before:.2f}, now {after:.2f}")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    found = model.estimate(ward.X)
print(found)
print(f"actual mean F1: {model.score(ward.X, ward.Y):.3f}")

# %% [markdown]
# A cross-fitted model cannot test for shift, and says so. Fifty random reports of the ward,
# labelled by a person, give a 95% interval that is valid under any shift:

# %%
audit = model.draw_audit(ward.X, n_rows=50, random_state=0)
print(model.estimate(ward.X, rows=audit, Y_true=np.asarray(ward.Y)[audit]))

# %% [markdown]
# ## Decision
#
# Use the codes whose precision interval lies above the precision that the hospital needs; have the
# others checked. Before the model serves another ward, label fifty of its reports at random.
