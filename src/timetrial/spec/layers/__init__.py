"""The layers of the network language. Importing this package registers them all."""

from timetrial.spec.layers.activation import Activation
from timetrial.spec.layers.attention import Attention
from timetrial.spec.layers.base import AnyLayer, Graph, Layer, Node, Parameter, layers, lower_all
from timetrial.spec.layers.composite import Parallel, Residual
from timetrial.spec.layers.conv import Conv2d
from timetrial.spec.layers.dense import Dense, Embedding, Positions
from timetrial.spec.layers.norm import BatchNorm, LayerNorm, LocalResponseNorm
from timetrial.spec.layers.pool import AvgPool, GlobalAvgPool, GlobalMaxPool, MaxPool
from timetrial.spec.layers.recurrent import Gru, Lstm, SimpleRnn
from timetrial.spec.layers.reshape import Dropout, Flatten

__all__ = [
    "Activation", "AnyLayer", "Attention", "AvgPool", "BatchNorm", "Conv2d", "Dense", "Dropout", "Embedding",
    "Flatten", "GlobalAvgPool", "GlobalMaxPool", "Graph", "Gru", "Layer", "LayerNorm", "LocalResponseNorm", "Lstm",
    "MaxPool", "Node", "Parallel", "Parameter", "Positions", "Residual", "SimpleRnn", "layers", "lower_all",
]  # fmt: skip
