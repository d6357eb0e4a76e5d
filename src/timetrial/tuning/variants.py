"""Smaller networks of the same family: another function, so proposed with the gain that the count of operations
predicts, and applied only on request."""

from __future__ import annotations

from timetrial import zoo
from timetrial.spec.operations import operations
from timetrial.spec.trial import Trial
from timetrial.tuning.proposals import Proposal
from timetrial.tuning.situation import Situation
from timetrial.zoo.catalogue import lookup
from timetrial.zoo.entry import OptionError

MOST = 8
WHY = "fewer operations; another function, so its accuracy decides"


def smaller(known: Situation) -> list[Proposal]:
    """Published variants with the same input and output, the largest gain first."""
    base = known.base
    try:
        names = [name for name in lookup(base.model).names if name != base.model]
    except ValueError:  # a network written out in the study has no family
        return []
    found = {}
    for name in dict.fromkeys(names):
        gain = _gain(base, name)
        if gain is not None and gain > 1:
            found[zoo.find(name).network.name] = gain
    best = sorted(found, key=found.__getitem__, reverse=True)[:MOST]
    tasks = tuple(known.bases)
    return [
        Proposal("variant", name, WHY, (("model", name),), tasks, exact=False, joins=False,
                 tried=known.variants, predicted=found[name])
        for name in best
    ]  # fmt: skip


def _gain(base: Trial, name: str) -> float | None:
    try:
        network = zoo.find(name).network
    except (OptionError, ValueError):
        return None
    same = (network.input, network.output_shape) == (base.network.input, base.network.output_shape)
    if not same or network == base.network:
        return None
    ours, theirs = (operations(one, base.recipe.batch) for one in (base.network, network))
    mine, other = (ours.train, theirs.train) if base.task == "train" else (ours.infer, theirs.infer)
    return mine / other if other else None
