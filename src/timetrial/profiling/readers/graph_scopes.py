"""Where an operation of a TensorFlow 1 graph belongs, by its name: `gradients/layer/conv1/Conv2D_grad/...`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from timetrial.spec.network import Network
from timetrial.spec.operations import operations
from timetrial.spec.shapes import elements

_REWRITTEN = re.compile(r"(?:\w+(?:Folding|Optimizer)/)+")  # before the name of what it took the place of
_GRADIENTS = re.compile(r"(?:training(?:_\d+)?/[^/]+/)?gradients(?:_\d+)?/")
_PHASES = (
    ("loss", r"loss(?:_\d+)?/"),
    ("optimiser", r"(?:optimiser|training(?:_\d+)?)/"),
    ("input", r"input/"),
    ("forward", r"(?:head|answer)(?:_\d+)?/"),
)
_SESSION = ("_Arg", "_Retval", "NoOp")  # what a session adds to the graph for itself
_MOVES = re.compile(r"_(?:Host)?(?:Send|Recv)|MEMCPY")


@dataclass(frozen=True)
class Place:
    phase: str
    layer: str | None = None

    @property
    def attribution(self) -> str:
        return "none" if self.phase in ("unknown", "runtime") else "scope"


class Scopes:
    """Places by name, each worked out once."""

    def __init__(self, network: Network) -> None:
        self._nodes = {_plain(node.name): node.name for node in network.nodes}
        self._roles = {node.name: {parameter.role for parameter in node.parameters} for node in network.nodes}
        counted = {layer.layer: layer.forward for layer in operations(network).layers}
        self._work = {node.name: elements(node.shape) + counted.get(node.name, 0) for node in network.nodes}
        self._known: dict[tuple[str, str], Place] = {}

    def place(self, name: str, kind: str) -> Place:
        if (name, kind) not in self._known:
            self._known[name, kind] = self._find(name, kind)
        return self._known[name, kind]

    def _find(self, name: str, kind: str) -> Place:
        if kind in _SESSION:
            return Place("runtime")
        if _MOVES.search(kind):
            return Place("transfer")
        name = _REWRITTEN.sub("", name, count=1) if _REWRITTEN.match(name) else name
        back = _GRADIENTS.match(name)
        inner = name[back.end() :] if back else name
        layer = self._layer(inner)
        if back:
            return Place("backward", layer)
        if layer:
            return Place("forward", layer)
        return Place(next((phase for phase, begin in _PHASES if re.match(begin, name)), "unknown"))

    def _layer(self, name: str) -> str | None:
        """Of `layer/NODE/...`, or of Keras 2's `nNUMBER_NODE/...`."""
        if name.startswith("layer/"):
            parts = name.removeprefix("layer/").split("/")
        elif found := re.match(r"n\d+_([^/]+)", name):
            parts = [found[1]]
        else:
            return None
        for length in range(len(parts), 0, -1):
            if node := self._nodes.get(_plain("/".join(parts[:length]))):
                return node
        close = [key for key in self._nodes if parts[0].startswith(key)]
        return self._nodes[max(close, key=len)] if close else None

    def fused(self, inputs: Iterable[str], last: str | None) -> dict[str, float]:
        """Layers that one operation did, with their shares of its work: those whose parameters it reads, and the one
        it is named after. An operation fused by Grappler bears the name of the last of those that it replaces."""
        found = [layer for name in inputs if (layer := self._reads(name))]
        layers = dict.fromkeys([*found, *([last] if last else [])])
        total = sum(self._work[layer] for layer in layers)
        return {layer: self._work[layer] / total for layer in layers}

    def _reads(self, name: str) -> str | None:
        layer = self._layer(name)
        role = name.removesuffix("/read").rpartition("/")[2]
        return layer if layer and (role in self._roles[layer] or role == "ReadVariableOp") else None


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name)
