# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
# ---

# %% [markdown]
# # Genes: few labelled rows, rare labels, a change of prevalence
#
# A lab predicts the functional classes of yeast genes and has labelled 300 of them. **What precision
# and recall does the classifier have for each class, and does that still hold for a batch in
# which one class is more frequent?**
#
# Data: Yeast (2,417 genes, 14 functional classes). It needs the extra `study`.

# %%
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import labelsure as ls

data = ls.load_dataset("yeast")
print(data)

# %% [markdown]
# With 300 labelled genes there are too few to hold many out, so the classifier is cross-fitted
# (`cv=5`). Its estimates are those of models trained on 80% of the genes: slightly pessimistic.

# %%
labelled, new = ls.split_dataset(data, len(data) - 300, random_state=0)
base = MultiOutputClassifier(
    LogisticRegression(C=1, max_iter=500, class_weight="balanced")
)
with warnings.catch_warnings():
    # Classes without a gene in a fold.
    warnings.simplefilter("ignore", ls.ProbabilityWarning)
    model = ls.AccuracyAwareClassifier(base, "f1", cv=5, random_state=0)
    model.fit(labelled.X, labelled.Y)
    print(model.estimate(new.X))
    print(f"actual mean F1: {model.score(new.X, new.Y):.3f}")

# %% [markdown]
# ## Class by class
#
# Precision and recall of each class with 95% intervals, without labels of the new genes. Rare
# classes have wide intervals, because 300 genes contain few examples of them.

# %%
table = model.estimate_labels(new.X).to_frame()
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
print("classes that are predicted 20 times or more:")
print(f"actual precision inside the interval for {inside.sum()} of {len(rows)}")

# %% [markdown]
# ## A simulated change of prevalence
#
# A batch in which the odds of the most frequent class are three times as high. This is a
# simulation, by resampling the new genes.

# %%
top = int(np.argmax(Y_new.sum(axis=0)))
weights = np.where(Y_new[:, top] == 1, 3.0, 1.0)
rows = np.random.default_rng(0).choice(
    len(Y_new), 500, p=weights / weights.sum()
)
batch = new.take(rows)
before, after = Y_new[:, top].mean(), batch.Y[:, top].mean()
print(f"prevalence of {data.label_names[top]}: {before:.2f}, now {after:.2f}")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    found = model.estimate(batch.X)
print(found)
print(f"actual mean F1: {model.score(batch.X, batch.Y):.3f}")

# %% [markdown]
# A cross-fitted model cannot test for shift, and says so. Fifty random genes of the batch,
# labelled by a person, give a 95% interval that is valid under any shift:

# %%
audit = model.draw_audit(batch.X, n_rows=50, random_state=0)
print(model.estimate(batch.X, rows=audit, Y_true=np.asarray(batch.Y)[audit]))

# %% [markdown]
# ## Decision
#
# Use the classes whose precision interval lies above the precision that is needed; have the
# others checked. Before the model serves another source of genes, label fifty random ones of it.
