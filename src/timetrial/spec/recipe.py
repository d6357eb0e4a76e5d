"""How a network is trained: batch, loss, optimiser, schedule, precision, epochs."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Gt, Interval
from pydantic import BaseModel, ConfigDict, Field

from timetrial.spec.network import Loss
from timetrial.spec.shapes import Natural, Positive

Rate = Annotated[float, Gt(0)]
Share = Annotated[float, Interval(ge=0, lt=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sgd(_Model):
    """v = momentum v + (g + weight_decay w);  w = w - rate v  (Nesterov: w - rate (g' + momentum v))."""

    kind: Literal["sgd"] = "sgd"
    rate: Rate = 0.01
    momentum: Share = 0.0
    nesterov: bool = False
    weight_decay: Annotated[float, Interval(ge=0)] = 0.0  # an L2 term on all trainable parameters


class Adam(_Model):
    """w = w - rate m' / (sqrt(v') + epsilon), m' and v' corrected for their start at zero."""

    kind: Literal["adam"] = "adam"
    rate: Rate = 0.001
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Rate = 1e-7
    weight_decay: Annotated[float, Interval(ge=0)] = 0.0


class RmsProp(_Model):
    """v = rho v + (1 - rho) g^2;  w = w - rate g / (sqrt(v) + epsilon)."""

    kind: Literal["rmsprop"] = "rmsprop"
    rate: Rate = 0.001
    rho: Share = 0.9
    epsilon: Rate = 1e-7
    weight_decay: Annotated[float, Interval(ge=0)] = 0.0


Optimiser = Annotated[Sgd | Adam | RmsProp, Field(discriminator="kind")]


class Constant(_Model):
    kind: Literal["constant"] = "constant"


class Steps(_Model):
    """The rate is multiplied by `factor` at each of the epochs or iterations named (counted from 0)."""

    kind: Literal["steps"] = "steps"
    at: tuple[Natural, ...]
    factor: Rate = 0.1
    per: Literal["epoch", "iteration"] = "epoch"


class Exponential(_Model):
    """rate x factor ^ n, never below `floor`."""

    kind: Literal["exponential"] = "exponential"
    factor: Rate
    floor: Annotated[float, Interval(ge=0)] = 0.0
    per: Literal["epoch", "iteration"] = "epoch"


class Cosine(_Model):
    """From the rate down to `floor` over `over` epochs or iterations, after a linear rise over `warmup`."""

    kind: Literal["cosine"] = "cosine"
    over: Positive
    warmup: Natural = 0
    floor: Annotated[float, Interval(ge=0)] = 0.0
    per: Literal["epoch", "iteration"] = "iteration"


Schedule = Annotated[Constant | Steps | Exponential | Cosine, Field(discriminator="kind")]


class MomentumRise(_Model):
    """momentum_n = last - (last - first) exp(-speed n), n counted from 0."""

    first: Share
    last: Share
    speed: Rate
    per: Literal["epoch", "iteration"] = "epoch"


class Recipe(_Model):
    batch: Positive = 32
    epochs: Positive = 1
    loss: Loss = "cross_entropy"
    labels: Literal["integer", "one_hot"] = "integer"
    optimiser: Optimiser = Sgd()
    schedule: Schedule = Constant()
    momentum_schedule: MomentumRise | None = None
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    shuffle: bool = True
    last_batch: Literal["drop", "keep"] = "drop"
