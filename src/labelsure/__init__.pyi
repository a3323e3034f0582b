from labelsure import classifiers as classifiers
from labelsure import decisions as decisions
from labelsure import distributions as distributions
from labelsure import errors as errors
from labelsure import estimation as estimation
from labelsure import guarantees as guarantees
from labelsure import labelsets as labelsets
from labelsure import metrics as metrics
from labelsure import model as model
from labelsure import study as study
from labelsure import tables as tables
from labelsure.classifiers._adapters import as_distribution as as_distribution
from labelsure.classifiers._chain_classifiers import BinaryRelevance as BinaryRelevance
from labelsure.classifiers._chain_classifiers import (
    EnsembleOfClassifierChains as EnsembleOfClassifierChains,
)
from labelsure.classifiers._chain_classifiers import (
    ProbabilisticClassifierChain as ProbabilisticClassifierChain,
)
from labelsure.classifiers._powerset_classifier import LabelPowerset as LabelPowerset
from labelsure.classifiers._precomputed import PrecomputedProbabilities as PrecomputedProbabilities
from labelsure.classifiers._predicted_probabilities import ProbabilityWarning as ProbabilityWarning
from labelsure.classifiers.recalibration._constrained import (
    ConstrainedCalibration as ConstrainedCalibration,
)
from labelsure.classifiers.recalibration._labelwise import (
    LabelwiseCalibration as LabelwiseCalibration,
)
from labelsure.classifiers.recalibration._recalibrated_classifier import (
    RecalibratedClassifier as RecalibratedClassifier,
)
from labelsure.classifiers.recalibration._temperature import (
    TemperatureScaling as TemperatureScaling,
)
from labelsure.decisions._rules import decide as decide
from labelsure.decisions._rules import expected_accuracy as expected_accuracy
from labelsure.distributions._base import LabelsetDistribution as LabelsetDistribution
from labelsure.distributions._base import confidence as confidence
from labelsure.distributions._dense import DenseDistribution as DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels as IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable as LabelsetTable
from labelsure.distributions._sparse_labels import (
    SparseIndependentLabels as SparseIndependentLabels,
)
from labelsure.distributions.constraints import LabelConstraints as LabelConstraints
from labelsure.errors import DataError as DataError
from labelsure.errors import InputError as InputError
from labelsure.errors import LabelsureError as LabelsureError
from labelsure.errors import ShiftWarning as ShiftWarning
from labelsure.errors import TooLargeError as TooLargeError
from labelsure.estimation._batch_estimates import Estimate as Estimate
from labelsure.estimation._estimator import AccuracyEstimator as AccuracyEstimator
from labelsure.estimation._reliability import reliability as reliability
from labelsure.estimation._shift import shift_test as shift_test
from labelsure.estimation.monitoring import monitor as monitor
from labelsure.estimation.score_table import ScoreTable as ScoreTable
from labelsure.guarantees._by_group import ByGroup as ByGroup
from labelsure.guarantees._label_thresholds import LabelThresholds as LabelThresholds
from labelsure.guarantees._labelset_region import LabelsetRegion as LabelsetRegion
from labelsure.guarantees._policy import AcceptPolicy as AcceptPolicy
from labelsure.guarantees._policy import TargetWarning as TargetWarning
from labelsure.guarantees._policy import accept_curve as accept_curve
from labelsure.labelsets.names import read_labelsets as read_labelsets
from labelsure.metrics.partial import PartialLabelsets as PartialLabelsets
from labelsure.metrics.registry import accuracy as accuracy
from labelsure.model._aware_classifier import AccuracyAwareClassifier as AccuracyAwareClassifier
from labelsure.saving import load as load
from labelsure.tables.datasets import Dataset as Dataset
from labelsure.tables.datasets import list_datasets as list_datasets
from labelsure.tables.datasets import load_dataset as load_dataset
from labelsure.tables.datasets import make_labelsets as make_labelsets
from labelsure.tables.datasets import read_dataset as read_dataset
from labelsure.tables.datasets import split_dataset as split_dataset

__version__: str
__all__: list[str]
