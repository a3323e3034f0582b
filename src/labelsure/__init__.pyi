from labelsure._kernels.threads import watch_progress as watch_progress
from labelsure.classifiers._adapters import as_distribution as as_distribution
from labelsure.classifiers._bernoulli_mixture import (
    ConditionalBernoulliMixture as ConditionalBernoulliMixture,
)
from labelsure.classifiers._chain_classifiers import BinaryRelevance as BinaryRelevance
from labelsure.classifiers._chain_classifiers import (
    EnsembleOfClassifierChains as EnsembleOfClassifierChains,
)
from labelsure.classifiers._chain_classifiers import (
    ProbabilisticClassifierChain as ProbabilisticClassifierChain,
)
from labelsure.classifiers._powerset_classifier import LabelPowerset as LabelPowerset
from labelsure.classifiers._precomputed import PrecomputedProbabilities as PrecomputedProbabilities
from labelsure.classifiers._probability_layouts import ProbabilityWarning as ProbabilityWarning
from labelsure.classifiers._recalibrated_classifier import (
    RecalibratedClassifier as RecalibratedClassifier,
)
from labelsure.classifiers._trellis_classifier import ClassifierTrellis as ClassifierTrellis
from labelsure.classifiers.recalibration import ChainDependence as ChainDependence
from labelsure.classifiers.recalibration import (
    LabelwiseCalibration as LabelwiseCalibration,
)
from labelsure.classifiers.recalibration import (
    TemperatureScaling as TemperatureScaling,
)
from labelsure.decisions._label_ranking import expected_precision_at_k as expected_precision_at_k
from labelsure.decisions._label_ranking import precision_at_k as precision_at_k
from labelsure.decisions._label_ranking import rank_labels as rank_labels
from labelsure.decisions._rules import decide as decide
from labelsure.decisions._rules import expected_accuracy as expected_accuracy
from labelsure.distributions._bridge import LabelsetDistribution as LabelsetDistribution
from labelsure.distributions._bridge import confidence as confidence
from labelsure.distributions._chain_links import LinearChain as LinearChain
from labelsure.distributions._chain_links import PrefixChain as PrefixChain
from labelsure.distributions._chain_mixture import ChainMixture as ChainMixture
from labelsure.distributions._dense import DenseDistribution as DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels as IndependentLabels
from labelsure.distributions._independent_labels import (
    SparseIndependentLabels as SparseIndependentLabels,
)
from labelsure.distributions._independent_labels import suggest_floor as suggest_floor
from labelsure.distributions._independent_mixture import IndependentMixture as IndependentMixture
from labelsure.distributions._labelset_table import LabelsetTable as LabelsetTable
from labelsure.distributions._smoothed_table import SmoothedTable as SmoothedTable
from labelsure.distributions._trellis import TrellisDistribution as TrellisDistribution
from labelsure.distributions.candidates import Profile as Profile
from labelsure.errors import DataError as DataError
from labelsure.errors import InputError as InputError
from labelsure.errors import LabelsureError as LabelsureError
from labelsure.errors import NotEstimableError as NotEstimableError
from labelsure.errors import RowsError as RowsError
from labelsure.errors import ShiftWarning as ShiftWarning
from labelsure.errors import TooLargeError as TooLargeError
from labelsure.errors import UnknownNameError as UnknownNameError
from labelsure.estimation._batch_estimates import Estimate as Estimate
from labelsure.estimation._estimator import AccuracyEstimator as AccuracyEstimator
from labelsure.estimation._reliability import Reliability as Reliability
from labelsure.estimation._reliability import reliability as reliability
from labelsure.estimation._shift import ShiftTest as ShiftTest
from labelsure.estimation._shift import shift_test as shift_test
from labelsure.estimation.monitoring import monitor as monitor
from labelsure.estimation.score_table import ScoreTable as ScoreTable
from labelsure.guarantees._accept_curve import AcceptCurve as AcceptCurve
from labelsure.guarantees._accept_curve import accept_curve as accept_curve
from labelsure.guarantees._label_thresholds import LabelThresholds as LabelThresholds
from labelsure.guarantees._labelset_region import LabelsetRegion as LabelsetRegion
from labelsure.guarantees._policy import AcceptPolicy as AcceptPolicy
from labelsure.guarantees._policy import TargetWarning as TargetWarning
from labelsure.labelsets.names import NamedLabelsets as NamedLabelsets
from labelsure.labelsets.names import read_labelsets as read_labelsets
from labelsure.metrics.partial import PartialLabelsets as PartialLabelsets
from labelsure.metrics.registry import accuracy as accuracy
from labelsure.model._aware_classifier import AccuracyAwareClassifier as AccuracyAwareClassifier
from labelsure.saving import load as load
from labelsure.tables.dataset import Dataset as Dataset
from labelsure.tables.dataset import split_dataset as split_dataset
from labelsure.tables.datasets import list_datasets as list_datasets
from labelsure.tables.datasets import load_dataset as load_dataset
from labelsure.tables.datasets import make_labelsets as make_labelsets
from labelsure.tables.datasets import read_dataset as read_dataset
from labelsure.tables.features import TableColumns as TableColumns
from labelsure.tables.predictions import (
    PredictionColumns as PredictionColumns,
)

__version__: str
__all__: list[str]
