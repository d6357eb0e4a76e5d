"""From the name of an operation of TensorFlow or XLA to the layer and the phase it belongs to.

The engines' own scopes (`timetrial_worker.adapters.scopes`) and those of Keras are parts of a path, which
differentiation wraps: `jit(step)/transpose(jvp(layer.conv1.))/mul`, `gradient_tape/layer.conv1./Conv2DBackpropFilter`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from timetrial.profiling.workload import Workload
from timetrial.spec.layers import Node
from timetrial.spec.shapes import elements

_LAYER = re.compile(r"layer\.(.+)\.(?:_\d+)?")
_PHASE = re.compile(r"phase\.(loss|optimiser|head)\.(?:_\d+)?")
_CODE = re.compile(r"-([0-9a-f]+)-")
_KERAS_LAYER = re.compile(r"n(\d+)_.*")
_KERAS_PHASES = (
    ("loss", re.compile(r"compile_loss(_\d+)?")),
    ("optimiser", re.compile(r"(\w+_)?(sgd|adam|rmsprop)(_\d+)?")),
    ("head", re.compile(r"head(_\d+)?")),
)


@dataclass(frozen=True)
class Place:
    layer: str | None
    phase: str


NOWHERE = Place(None, "unknown")


class Scopes:
    """Knows the layers of one workload, as the engines name them."""

    def __init__(self, workload: Workload) -> None:
        self.nodes: dict[str, Node] = {node.name: node for node in workload.network.nodes}
        self._order = list(self.nodes)
        self._batch = workload.recipe.batch
        self._keras = workload.engine.startswith("keras")
        self.place = cache(self._place)

    def _place(self, name: str) -> Place:
        parts = re.split(r"[/()]", name)
        layer = next(filter(None, map(self._layer, parts)), None)
        phase = next(filter(None, map(self._phase, parts)), None)
        backward = "gradient_tape" in parts or re.search(r"(^|/)transpose\(", name) is not None
        if phase == "optimiser":
            return Place(None, phase)
        if phase == "head":
            layer, phase = self._order[-1], None
        if backward:
            return Place(layer, "backward")
        if phase == "loss":
            return Place(None, phase)
        forward = layer is not None or "jvp(" in name
        return Place(layer, "forward") if forward else NOWHERE

    def _layer(self, part: str) -> str | None:
        if found := _LAYER.fullmatch(part):
            name = _CODE.sub(lambda code: chr(int(code.group(1), 16)), found.group(1))
            return name if name in self.nodes else None
        if self._keras and (found := _KERAS_LAYER.fullmatch(part)):
            number = int(found.group(1))
            name = self._order[number - 1] if 0 < number <= len(self._order) else ""
            return name if part.startswith(f"n{number}_" + re.sub(r"\W", "_", name)) else None
        return None

    def _phase(self, part: str) -> str | None:
        if found := _PHASE.fullmatch(part):
            return found.group(1)
        if not self._keras or self._layer(part):
            return None
        return next((phase for phase, pattern in _KERAS_PHASES if pattern.fullmatch(part)), None)

    def weight(self, name: str) -> float:
        """What a layer computes forward in a step: multiply-adds, and one operation for each element of its result."""
        node = self.nodes[name]
        return float(self._batch * (node.multiply_adds + elements(node.shape)))

    def fused_before(self, name: str) -> list[str]:
        """The layer, and those before it up to the nearest with parameters: what is fused under the last one's name."""
        found = [name]
        while not self.nodes[found[-1]].parameters:
            sources = self.nodes[found[-1]].inputs
            if len(sources) != 1 or sources[0] not in self.nodes:
                return [name]
            found.append(sources[0])
        return found[::-1]


def shares(weights: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Layers with their parts of one whole."""
    together: dict[str, float] = {}
    for layer, weight in weights:
        together[layer] = together.get(layer, 0.0) + weight
    total = sum(together.values())
    return tuple((layer, weight / total) for layer, weight in together.items()) if total else ()
