"""Convolution (cross-correlation, as all of today's engines mean it) over (H, W, C)."""

from __future__ import annotations

from timetrial.spec.initialisers import AnyInitialiser, GlorotUniform, Zeros
from timetrial.spec.layers.activation import AnyActivation
from timetrial.spec.layers.base import Layer, Node, Parameter, layers
from timetrial.spec.shapes import Padding, Pair, Positive, Shape, need_rank, slide


@layers.register("conv2d")
class Conv2d(Layer):
    filters: Positive
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Padding = "valid"
    activation: AnyActivation = None
    bias: bool = True
    kernel_init: AnyInitialiser = GlorotUniform()
    bias_init: AnyInitialiser = Zeros()

    def operation(self, name: str, source: str, shape: Shape) -> Node:
        need_rank(shape, (3,), "an image (H, W, C)")
        size, pads = slide(shape[:2], self.kernel, self.stride, self.padding)
        taps = self.kernel[0] * self.kernel[1]
        reach = (taps * shape[2], taps * self.filters)
        kernel_shape = (*self.kernel, shape[2], self.filters)
        parameters = [Parameter(f"{name}/kernel", "kernel", kernel_shape, self.kernel_init, reach)]
        if self.bias:
            parameters.append(Parameter(f"{name}/bias", "bias", (self.filters,), self.bias_init, reach))
        attrs = {
            "filters": self.filters,
            "kernel": self.kernel,
            "stride": self.stride,
            "pads": pads,
            "bias": self.bias,
        }
        work = size[0] * size[1] * self.filters * taps * shape[2]
        return Node(name, "conv2d", (source,), (shape,), (*size, self.filters), attrs, tuple(parameters), work)
