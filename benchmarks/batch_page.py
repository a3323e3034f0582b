"""The page about batches: what `benchmarks.batches` measured, and which aims were reached."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.batch_coverage import tabulate_coverage
from benchmarks.batch_draws import CHOSEN_ON, CONFIRMED_ON, STRENGTH
from benchmarks.batch_methods import N_LABELLED
from benchmarks.batch_warnings import LARGE_ERROR, count_warnings

MAX_RATIO = 1.2
COVERAGE = (0.93, 0.97)
MIN_COVERAGE = 0.90
MAX_REFUSED = 0.20
MIN_EFFECTIVE_SIZE = 100
KIND_TITLES = {
    "none": "Without a shift",
    "covariate": "Covariate shift: some kinds of instances come more often",
    "label": "Label shift: some labels come more often, others less",
    "more labels": "More labels than before",
    "fewer labels": "Fewer labels than before",
}
SHARES = ("covered", "no shift", "off", "shifted")
CELL = ["set", "classifier", "split", "metric", "kind", "size"]


def add_measures(found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with error, coverage, width, and whether they beat the calibration mean."""
    deviation = found["mean"] - found["truth"]
    inside = (found["low"] <= found["truth"]) & (found["truth"] <= found["high"])
    found = found.assign(
        bias=deviation,
        error=deviation.abs(),
        refused=found["mean"].isna().astype(float),
        covered=inside.astype(float).where(found["low"].notna()),
        width=found["high"] - found["low"],
    )
    plain = found[found["method"] == "calibration mean"].set_index(CELL)["error"]
    beside = plain.reindex(pd.MultiIndex.from_frame(found[CELL])).to_numpy()
    found["better"] = (found["error"] < beside).astype(float).where(found["error"].notna())
    return found


def summarise(found: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the means of the measures in groups of rows, in the order in which they come."""
    groups = found.groupby(by, sort=False)
    table = groups[["error", "bias", "better", "covered", "width", "refused"]].mean()
    answered = found[found["refused"] == 0].groupby(by, sort=False)
    table.insert(1, "of noise", answered["error"].mean() / answered["noise"].mean())
    table.insert(0, "batches", groups.size())
    return table.reset_index()


def markdown(table: pd.DataFrame) -> str:
    """Return a Markdown table; shares as percentages, what is not known as a dash."""
    lines = ["| " + " | ".join(map(str, table.columns)) + " |", "|" + "---|" * table.shape[1]]
    for row in table.itertuples(index=False):
        cells = (show(name, value) for name, value in zip(table.columns, row, strict=True))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def show(name: str, value: object) -> str:
    """Return one cell of a table as text."""
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    if np.isnan(number):
        return "-"
    if name in ("better", "refused") or name.startswith(SHARES):
        return f"{number:.0%}"
    if name in ("AUC", "p"):
        return f"{number:g}"
    if name in ("batches", "size", "calibration"):
        return f"{number:,.0f}"
    return f"{number:.2f}" if name == "of noise" else f"{number:.3f}"


def uncertain_share(covered: pd.DataFrame) -> str:
    """Return the share of covered batches as text, with its standard error.

    Metrics, classifiers and sizes of one split of a set share most of their error: splits are what
    was repeated.
    """
    by_split = covered.dropna(subset="covered").groupby(["set", "split"])["covered"]
    means, sizes = by_split.mean(), by_split.size()
    share = float((means * sizes).sum() / sizes.sum())
    error = float(np.sqrt((((means - share) * sizes) ** 2).sum()) / sizes.sum())
    return f"{share:.1%}, give or take {error:.1%}"


def judge_aims(found: pd.DataFrame, divisions: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each aim: what was wanted, what came out."""
    rows = []

    def add(what: str, wanted: str, value: float, shown: str, met: bool) -> None:
        verdict = "-" if np.isnan(value) else "met" if met else "**missed**"
        rows.append((what, wanted, "-" if np.isnan(value) else shown, verdict))

    ours = found[(found["method"] == "ours") & (found["kind"] == "none")]
    ratio = ours["error"].mean() / ours["noise"].mean()
    wanted = f"at most {MAX_RATIO:g} times the noise"
    add("no shift, error", wanted, ratio, f"{ratio:.2f} times", ratio <= MAX_RATIO)
    for rows_of, how in ((ours, ""), (divisions, ", many divisions")):
        for size, mine in rows_of.groupby("size"):
            share = mine["covered"].mean()
            met = COVERAGE[0] <= round(share, 3) <= COVERAGE[1]
            what = f"no shift, batches of {size:,}{how}"
            add(what, "covers 93 to 97 %", share, uncertain_share(mine), met)
    for kind, method in (("covariate", "ours weighted"), ("label", "ours tilted")):
        mine = found[(found["kind"] == kind) & (found["method"] == method)]
        share = mine["covered"].mean()
        shown = uncertain_share(mine) if share > 0 else "-"
        what = f"{kind} shift, {method}"
        add(what, "covers at least 90 %", share, shown, share >= MIN_COVERAGE)
        enough = mine[mine["effective"] > MIN_EFFECTIVE_SIZE]
        refused = enough["refused"].mean()
        what = f"{kind} shift, effective size over {MIN_EFFECTIVE_SIZE}"
        met = refused <= MAX_REFUSED
        add(what, "refuses at most 20 %", refused, f"{refused:.1%}", met)
        rows.append(
            (f"{kind} shift, of all batches", "", f"refuses {mine['refused'].mean():.0%}", "")
        )
    return pd.DataFrame(rows, columns=["what", "aim", "came out", "verdict"])


def name_splits(found: pd.DataFrame) -> str:
    """Return how many splits the sets have, in words."""
    counts = found.groupby("set", sort=False)["split"].nunique()
    usual = counts.mode()[0]
    others = [f"{name} {count}" for name, count in counts.items() if count != usual]
    return f"{usual} times" + "".join(f", {other}" for other in others)


def make_page(found: pd.DataFrame, divisions: pd.DataFrame) -> str:
    """Return the page: aims, one table for each kind and size, then ours by set.

    Parameters
    ----------
    found
        A row for each batch and method.
    divisions
        A row for each metric and size of many divisions without a shift.
    """
    found = add_measures(found)
    n_calibration = f"{found['calibration'].min():,} to {found['calibration'].max():,}"
    head = HEAD.format(
        strength=STRENGTH,
        n_splits=name_splits(found),
        calibration=n_calibration,
        chosen=", ".join(name for name in CHOSEN_ON if name in set(found["set"])),
        left_out=", ".join(sorted({*CHOSEN_ON, *CONFIRMED_ON} - set(found["set"]))) or "none",
        confirmed=", ".join(name for name in CONFIRMED_ON if name in set(found["set"])),
    )
    explained = COLUMNS_EXPLAINED.format(n=N_LABELLED)
    parts = [head, markdown(judge_aims(found, divisions)), READING, explained]
    for kind, title in KIND_TITLES.items():
        mine = found[found["kind"] == kind]
        if mine.empty:
            continue
        parts.append(f"\n## {title}")
        for size, rows in mine.groupby("size"):
            n_sets = rows["set"].nunique()
            parts.append(f"\nBatches of {size:,}, of {n_sets} sets:\n")
            parts.append(markdown(summarise(rows, ["method"])))
    plain = found[(found["kind"] == "none") & (found["method"] == "ours")]
    chosen = np.where(plain["set"].isin(CHOSEN_ON), "chosen on", "confirmed on")
    parts += [
        "\n## Ours without a shift, by set\n",
        markdown(summarise(plain, ["set", "classifier"])),
        "\nSets that features were chosen on, and others:\n",
        markdown(summarise(plain.assign(sets=chosen), ["sets", "metric"])),
        DIVISIONS.format(n=divisions["split"].nunique()),
        markdown(tabulate_coverage(divisions)),
        WARNINGS,
        markdown(count_warnings(found)),
    ]
    return "\n".join(parts) + "\n"


HEAD = """# Batches that nobody has labelled

Made by `python -m benchmarks.batches docs/batches.md`, not by hand; the script says how. A set is
split many times ({n_splits}) into instances to train a classifier, labelled calibration data
({calibration} instances) and a pool, from which batches are drawn: as they come, or shifted, so
that the log-odds of an instance to be drawn rise by {strength:g} with one standard deviation of
what the shift goes by. The weighted, the tilted and the few-labels way are asked in some of the
splits only. Metrics: exact match, Hamming, Jaccard.

- Sets on which the features of the estimator were chosen: {chosen}.
- Sets that had no part in that: {confirmed}.
- Sets that the script has and this run left out: {left_out}.

"""


DIVISIONS = """
## Coverage without a shift, by many divisions

Metrics, classifiers and sizes of one split share most of their error, so that a few dozens of
splits cannot tell 93 % from 95 %. Here one classifier is trained for each set, and what it was not
trained on is divided {n} times into calibration data and a batch. Three metrics.
"""


WARNINGS = f"""
## When `estimate` warns

By thresholds of the AUC and of the p-value, on the sets that they were chosen on and on others: the
share of batches of each size that are warned of. *No shift*: of those that are drawn as they come,
where a warning is false. *Off*: of those that are shifted, and whose plain estimate is wrong by
more than {LARGE_ERROR:g}. *Shifted*: of the shifted ones whose estimate is not.
"""


READING = """
What to take from it:

- Without a shift the estimate is nearly as good as chance lets it be. Its interval covers as often
  as it says where there are enough draws to tell: by many divisions of each set, below, at every
  size. Splits with a classifier of their own are too few for that: what they say of batches of
  1,000 is below the aim by less than its own error.
- Under covariate shift `shift="weighted"` holds what it says, in batches of 1,000 just about. It
  refuses small batches beside small calibration data now and then, and none with an effective size
  over 100. Without a shift it costs little.
- Under label shift `shift="labels"` holds what it says, and where nothing has shifted it is the
  plain estimate: factors of labels stay at 1 unless the batch shows that they have changed. Under
  covariate shift, where its assumption fails, its interval covers too seldom from 200 on.
- Batches with more or fewer labels look much like others. No way without labels of the batch covers
  as often as it says; the tilt comes nearest.
- With 30 labels of the batch, drawn at random, the interval does not depend on what has shifted.
  With so few it covers a little less than it says (the tables have each). In a batch of 50 nothing
  is better; in larger ones the interval is wider than the others, which is the price, and narrower
  than the 30 labels alone make it.
"""


COLUMNS_EXPLAINED = """
In the tables, `error` is the mean distance of the estimate from the batch's mean accuracy, `bias`
its mean with the sign. `of noise` is that error relative to what chance alone would leave, the
batch being as small as it is and the calibration data not being more. `better` is the share of
batches in which the error is smaller than that of the calibration mean: methods that see the same
calibration data share most of their error, so that even a much better one is far from 100 %.
`covered` is how often the interval at level 95 % holds the truth, among the batches that were not
`refused`.

The methods: the mean accuracy of the *calibration* data; the *expected accuracy* under the
classifier's own distribution (`model="plugin"`); *HP*, the probability of the predicted labelset;
*average confidence* of single labels; *ATC* (average thresholded confidence) and *DoC* (difference
of confidences), both on the expected accuracy; *ours*, `AccuracyEstimator` as it comes;
*ours weighted* (`shift="weighted"`), *ours tilted* (`shift="labels"`); *{n} labels* of the batch,
drawn at random, by themselves, and with the estimates of the others (`Y_true=`, `rows=`)."""
