"""The catalogue: what may be changed, when it is worth a try, and why. A rule gives proposals, or says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from timetrial.spec.trial import Task
from timetrial.tuning.proposals import Changes, Proposal
from timetrial.tuning.situation import Situation
from timetrial.tuning.variants import smaller

BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # instruction sets that multiply in it
TODAY = ("torch", "tensorflow", "jax", "keras-torch", "keras-tensorflow", "keras-jax")
OPENMP = ("torch", "keras-torch")
LAYOUTS = {"torch": "channels_last", "keras-torch": "channels_first", "keras-jax": "channels_first"}
COMPILERS = {
    "torch": ("compiled",), "keras-torch": ("inductor",), "tensorflow": ("xla",), "keras-tensorflow": ("xla", "graph"),
}  # fmt: skip
# XLA's newer convolution kernels for a CPU: they help one pass of some networks and slow down the other.
_YNN = "--xla_cpu_experimental_ynn_fusion_type="
XLA_FLAGS = (("without YNN convolutions", _YNN + "-individual_convolution"), ("without YNN", _YNN))
FEEDS: dict[str, tuple[dict[str, Any], ...]] = {
    "batch": ({"feed": "loader"},),
    "loader": ({"prefetch": 4}, {"workers": 2, "prefetch": 4}),
}
LEAST_PRODUCTS, LEAST_OPTIMISER, LEAST_INPUT = 0.5, 0.05, 0.1  # shares of a step below which a change cannot do much


class Unfit(Exception):
    """The rule has nothing to propose here; says why."""


@dataclass(frozen=True)
class Rule:
    """`find` yields names and changes; `exact` is whether they leave the function alone, but for rounding."""

    id: str
    what: str
    why: str
    find: Callable[[Situation], Iterator[tuple[str, Changes]]]
    tasks: tuple[Task, ...] = ("train", "infer")
    exact: bool = True
    joins: bool = True

    def proposals(self, known: Situation) -> list[Proposal]:
        """Raises `Unfit` where it does not apply."""
        tasks = tuple(task for task in self.tasks if task in known.bases)
        if not tasks:
            raise Unfit(f"is of {' and '.join(self.tasks)}, which was not asked for")
        return [
            Proposal(self.id, name, self.why, changes, tasks, self.exact, self.joins)
            for name, changes in self.find(known)
        ]


def _need(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Unfit(otherwise)


def _setting(name: str, **values: Any) -> tuple[str, Changes]:
    return name, tuple((f"settings.{key}", value) for key, value in values.items())


def _precision(known: Situation) -> Iterator[tuple[str, Changes]]:
    precision = known.base.recipe.precision
    _need(precision == "float32", f"the recipe already computes in {precision}")
    _need("recipe.precision" not in known.fixed, "the precision was asked for")
    _need(known.engine in TODAY, f"{known.engine} has no bfloat16")
    flags = set(known.machine.cpu.flags or ())
    _need(not known.on_cpu or bool(BFLOAT16 & flags), "this processor has no instructions for bfloat16")
    share = known.share("class", "conv", "matmul", "recurrent")
    _need(share is None or share >= LEAST_PRODUCTS, f"products take only {share or 0:.0%} of a step")
    yield "bfloat16", (("recipe.precision", "bfloat16"),)


def _layout(known: Situation) -> Iterator[tuple[str, Changes]]:
    _need(known.convolves, "the network has no convolution")
    _need(known.engine in LAYOUTS, f"{known.engine} has one layout only")
    _need(known.base.settings.layout == "default", "the layout was asked for")
    yield _setting(LAYOUTS[known.engine].replace("_", " "), layout=LAYOUTS[known.engine])


def _compile(known: Situation) -> Iterator[tuple[str, Changes]]:
    _need(known.engine in COMPILERS, f"{known.engine} has no other way to compile")
    _need(known.base.settings.compile == "default", "the compiler was asked for")
    for word in COMPILERS[known.engine]:
        yield _setting(f"compile: {word}", compile=word)


def _allocator(known: Situation) -> Iterator[tuple[str, Changes]]:
    _need(known.on_cpu, "blocks on a GPU are the engine's own")
    _need((known.machine.software.libc or "").startswith("glibc"), "the C library here is not glibc")
    _need(known.base.settings.allocator == "as-shipped", "the allocator is tuned already")
    yield _setting("tuned allocator", allocator="tuned")


def _xla(known: Situation) -> Iterator[tuple[str, Changes]]:
    _need(known.engine in ("jax", "keras-jax"), f"{known.engine} does not always run through XLA")
    _need(known.on_cpu and known.convolves, "the flags known here are of convolutions on a CPU")
    _need(not known.base.settings.xla_flags, "flags were asked for")
    for name, flags in XLA_FLAGS:
        yield _setting(name, xla_flags=flags)


def _threads(known: Situation) -> Iterator[tuple[str, Changes]]:
    _need(bool(known.placements), "the placement was asked for, or there is no other")
    for placement in known.placements:
        count = f"{placement.threads} thread{'s'[: placement.threads > 1]}"
        yield count if placement.device == "cpu" else str(placement), (("placement", str(placement)),)


def _wait(known: Situation) -> Iterator[tuple[str, Changes]]:
    _need(known.engine in OPENMP and known.on_cpu, f"{known.engine} does not work with OpenMP's threads here")
    _need(known.base.placement.threads > 1, "a single thread waits for no other")
    _need(known.base.settings.wait == "default", "how threads wait was asked for")
    for word in ("passive", "active"):
        yield _setting(f"{word} wait", wait=word)


def _update(known: Situation) -> Iterator[tuple[str, Changes]]:
    _need(known.engine == "torch", f"{known.engine} has one way to carry out its optimiser")
    _need(known.base.settings.update == "default", "the update was asked for")
    share = known.share("phase", "optimiser")
    _need(share is None or share >= LEAST_OPTIMISER, f"the optimiser takes only {share or 0:.1%} of a step")
    for word in ("fused", "foreach"):
        if (known.base.recipe.optimiser.kind, word) != ("rmsprop", "fused"):
            yield _setting(f"{word} optimiser", update=word)


def _feed(known: Situation) -> Iterator[tuple[str, Changes]]:
    feed = known.base.settings.feed
    _need(feed in FEEDS, "no input stands inside the clock (feed: resident)")
    _need(known.engine in ("torch", "tensorflow"), f"{known.engine} has no loader for steps")
    share = known.share("phase", "input")
    _need(share is None or share >= LEAST_INPUT, f"a step waits for its batch only {share or 0:.0%} of its time")
    for values in FEEDS[feed]:
        yield _setting(", ".join(f"{key} {value}" for key, value in values.items()), **values)


def _batch(known: Situation) -> Iterator[tuple[str, Changes]]:
    _need("recipe.batch" not in known.fixed, "the batch was asked for")
    for factor in (2, 4):
        batch = factor * known.base.recipe.batch
        yield f"batch {batch}", (("recipe.batch", batch),)


def _engine(known: Situation) -> Iterator[tuple[str, Changes]]:
    rivals = [name for name in known.rivals if name != known.base.engine]
    _need(bool(rivals), "no other engine was named (--engines)")
    for name in rivals:
        yield name, (("engine", name),)


CATALOGUE = (
    Rule(
        "precision", "bfloat16 where the processor multiplies in it", "products of half the bits",
        _precision, exact=False,
    ),
    Rule("layout", "the other layout of images", "kernels of convolutions want one layout and copy into it", _layout),
    Rule("xla_flags", "other kernels of XLA", "the newer ones are not always the faster ones", _xla),
    Rule("allocator", "keep freed blocks", "where big blocks go back at once, a step waits for new pages", _allocator),
    Rule("compile", "the other compiler", "fused operations pass over the memory less often", _compile),
    Rule("threads", "another number of threads", "large operations share well, small ones do not", _threads),
    Rule("wait", "how threads wait", "those that spin take cores from others, those that sleep wake late", _wait),
    Rule(
        "update", "the optimiser in one pass", "updates of many weights are many small operations",
        _update, ("train",),
    ),
    Rule("feed", "batches prepared ahead", "a step waits for its batch", _feed),
    Rule("batch", "a larger batch", "one dispatch for more samples; counted by the sample", _batch, exact=False),
    Rule("engine", "another engine", "the same function by other kernels", _engine, joins=False),
)  # fmt: skip


def propose(known: Situation) -> tuple[tuple[Proposal, ...], tuple[tuple[str, str], ...]]:
    """What is worth a try, in the order of the catalogue, and the rules that have nothing to propose, with why."""
    found: list[Proposal] = []
    without: list[tuple[str, str]] = []
    for rule in CATALOGUE:
        try:
            found += rule.proposals(known)
        except Unfit as reason:
            without.append((rule.id, str(reason)))
    found += smaller(known)
    return tuple(found), tuple(without)
