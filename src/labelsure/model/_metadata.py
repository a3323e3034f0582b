"""Where what is passed to the aware classifier's `fit` beside X and y goes to."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)

from labelsure.errors import InputError


def make_router(model: Any, estimator: Any) -> MetadataRouter:
    """Return what scikit-learn's metadata routing asks for.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier`.
    estimator
        The one that it fits.
    """
    router = MetadataRouter(owner=type(model).__name__).add_self_request(model)
    mapping = MethodMapping().add(caller="fit", callee="fit")
    router.add(estimator=estimator, method_mapping=mapping)
    if _has_splitter(model):
        mapping = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=model.cv, method_mapping=mapping)
    return router


def route_parameters(model: Any, params: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return what goes to the estimator's `fit` beside X and y, and the splitter's groups.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier`.
    params
        What its `fit` got, by name; None counts as not given.
    """
    params = {name: value for name, value in params.items() if value is not None}
    if _routing_enabled():
        routed = process_routing(model, "fit", **params)
        groups = routed.splitter.split.get("groups") if _has_splitter(model) else None
        return dict(routed.estimator.fit), groups
    groups = params.pop("groups", None)
    if groups is not None and not _has_splitter(model):
        raise InputError(
            f"`groups` are for a splitter, got cv={model.cv!r}. Pass e.g. cv=GroupKFold(5)."
        )
    return params, groups


def _has_splitter(model: Any) -> bool:
    return hasattr(model.cv, "split")
