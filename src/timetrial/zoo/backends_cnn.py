"""The four master and the four basic CNNs of the back ends' comparison, the basic ones with their sweeps.

Factor 1 of a sweep is often not the basic network: padding, pooling stride or image size differ between the sweeps.
The published parameter counts show how, and each sweep is made as they show.
"""

from __future__ import annotations

from fractions import Fraction

from timetrial.spec.initialisers import HeNormal, Uniform
from timetrial.spec.layers import (
    AvgPool,
    BatchNorm,
    Dropout,
    Flatten,
    GlobalAvgPool,
    Layer,
    LocalResponseNorm,
    MaxPool,
    Residual,
)
from timetrial.spec.recipe import Adam, Exponential, MomentumRise, Recipe, Sgd, Steps
from timetrial.zoo.entry import Entry, Model, Option
from timetrial.zoo.pieces import Sort, act, around, conv, dense, network

TRAINING = {"mnist": 60_000, "cifar10": 50_000, "svhn": 73_257, "norb": 58_320}
RELU = act("relu")

DNN_W20 = Recipe(batch=128, epochs=500, optimiser=Sgd(rate=0.001), schedule=Exponential(factor=0.993, floor=0.00003))
CNN_SOFTMAX = Recipe(batch=128, epochs=110, optimiser=Sgd(rate=0.01, momentum=0.9, weight_decay=0.0005))
ALL_CNN_C = Recipe(
    batch=100,
    epochs=350,
    optimiser=Sgd(rate=0.05, momentum=0.9, weight_decay=0.001),
    schedule=Steps(at=(200, 250, 300)),
)
CNN_RELU = Recipe(
    batch=100,
    epochs=150,
    optimiser=Sgd(rate=0.01, momentum=0.5, weight_decay=0.001),
    schedule=Steps(at=(99, 133, 141)),  # published as epochs 100, 134 and 142, counted from 1
    momentum_schedule=MomentumRise(first=0.5, last=0.9, speed=0.06),
)
WRN = Recipe(
    batch=128,
    epochs=160,
    optimiser=Sgd(rate=0.01, momentum=0.9, nesterov=True, weight_decay=0.0005),
    schedule=Steps(at=(80, 120)),
)
SVHN = Recipe(batch=256, epochs=160, optimiser=Adam(rate=0.01, weight_decay=0.0005), schedule=Steps(at=(80, 120)))
NORB = Recipe(
    batch=128,
    epochs=250,
    optimiser=Sgd(rate=0.001, momentum=0.9, weight_decay=0.01),
    schedule=Steps(at=(100, 200)),
)


def dnn_w20() -> Model:
    small = Uniform(low=-0.05, high=0.05)
    layers: list[Layer] = [conv(20, 4, "scaled_tanh", init=small), MaxPool()]
    layers += [conv(40, 5, "scaled_tanh", init=small), MaxPool(window=(3, 3)), Flatten()]
    layers += [dense(150, "scaled_tanh", init=small), dense(10, "softmax", init=small)]
    return Model(network((28, 20, 1), layers), DNN_W20)


def cnn_softmax(layers: int | None, filters: float | None, kernel: int | None, fraction: float) -> Model:
    padding: Sort = "same" if layers else "valid"
    body: list[Layer] = []
    for count in (32, 64):
        body += [conv(_scaled(count, filters), 5 + (kernel or 0), "relu", padding=padding)] * (layers or 1)
        body.append(MaxPool())
    head = [Flatten(), dense(500, "relu"), Dropout(rate=0.5), dense(10, "softmax")]
    return Model(network((28, 28, 1), [*body, *head]), CNN_SOFTMAX, examples=_share("mnist", fraction))


def all_cnn_c(dense_output: bool) -> Model:
    """The text ends with a dense layer that the published parameter count does not have."""
    layers: list[Layer] = [Dropout(rate=0.2)]
    for filters in (96, 192):
        layers += [conv(filters, 3, "relu", padding="same")] * 2
        layers += [conv(filters, 3, "relu", stride=2, padding="same"), Dropout(rate=0.5)]
    layers += [conv(192, 3, "relu", padding="same"), conv(192, 1, "relu"), conv(10, 1, "relu"), GlobalAvgPool()]
    layers.append(dense(10, "softmax") if dense_output else act("softmax"))
    return Model(network((32, 32, 3), layers), ALL_CNN_C)


def cnn_relu(layers: int | None, filters: float | None, kernel: int | None, fraction: float) -> Model:
    """The sweeps of filters and kernel pool with stride 3, that of the kernel on images enlarged to 64x64."""
    step = 2 if filters is None and kernel is None else 3
    size = 32 if kernel is None else 64
    body: list[Layer] = []
    for count, pool, rate in ((96, MaxPool, 0.25), (128, AvgPool, 0.25), (256, AvgPool, 0.5)):
        one = conv(_scaled(count, filters), 5 + (kernel or 0), "relu", padding=around(2))
        pooling = pool(window=(3, 3), stride=(step, step))
        body += [*[one] * (layers or 1), Dropout(rate=0.25), pooling, Dropout(rate=rate)]
    head = [Flatten(), *[dense(2048, "relu"), Dropout(rate=0.5)] * 2, dense(10, "softmax")]
    steps = ("subtract-mean",) if kernel is None else ("enlarge?factor=2", "subtract-mean")
    whole = network((size, size, 3), [*body, *head])
    return Model(whole, CNN_RELU, preprocessing=steps, examples=_share("cifar10", fraction))


def wrn_16_8() -> Model:
    layers: list[Layer] = [conv(16, 3, padding="same", bias=False, init=HeNormal())]
    for filters, stride in ((128, 1), (256, 2), (512, 2)):
        layers += _wide_group(filters, stride)
    layers += [BatchNorm(), RELU, AvgPool(window=(8, 8)), Flatten(), dense(10, "softmax", init=HeNormal())]
    return Model(network((32, 32, 3), layers), WRN)


def _wide_group(filters: int, stride: int) -> list[Layer]:
    """Two pre-activation blocks; the first changes the channels and reads its shortcut after the activation."""
    first, same = (conv(filters, 3, stride=step, padding="same", bias=False, init=HeNormal()) for step in (stride, 1))
    shortcut = conv(filters, 1, stride=stride, bias=False, init=HeNormal())
    change = Residual(body=(first, BatchNorm(), RELU, same), shortcut=(shortcut,))
    keep = Residual(body=(BatchNorm(), RELU, same, BatchNorm(), RELU, same))
    return [BatchNorm(), RELU, change, keep]


def basic_svhn(layers: int | None, filters: float | None, kernel: int | None, fraction: float) -> Model:
    """The kernel's sweep is without padding, which some of its sizes would need more of on one side."""
    padding: Sort = "same" if kernel is None else "valid"
    body: list[Layer] = []
    for count, size, rate in ((16, 5, 0.25), (512, 7, 0.5)):
        one = conv(_scaled(count, filters), size + (kernel or 0), padding=padding)
        body += [*[one, BatchNorm(), RELU] * (layers or 1), MaxPool(), Dropout(rate=rate)]
    hidden: list[Layer] = [dense(1024), BatchNorm(), RELU, Dropout(rate=0.5)]
    whole = network((32, 32, 3), [*body, Flatten(), *hidden * 2, dense(10, "softmax")])
    return Model(whole, SVHN, examples=_share("svhn", fraction))


def ap_relu() -> Model:
    return _norb(AvgPool, None, None, None, 1.0)


def mp_relu(layers: int | None, filters: float | None, kernel: int | None, fraction: float) -> Model:
    return _norb(MaxPool, layers, filters, kernel, fraction)


def _norb(
    pool: type[AvgPool] | type[MaxPool],
    layers: int | None,
    filters: float | None,
    kernel: int | None,
    fraction: float,
) -> Model:
    """The kernel's sweep is on images twice as large, without padding, with smaller windows of pooling."""
    swept = kernel is not None
    size, window = (96, 2) if swept else (48, 3)
    body: list[Layer] = []
    for step in (3, 2, 2) if swept else (3, 3, 3):
        one = conv(_scaled(64, filters), 5 + (kernel or 0), "relu", padding="valid" if swept else "same")
        body += [*[one] * (layers or 1), pool(window=(window, window), stride=(step, step)), LocalResponseNorm()]
    del body[-1]  # the last pooling has no normalisation after it
    head = [Flatten(), dense(500, "relu"), Dropout(rate=0.5), dense(6, "softmax")]
    whole = network((size, size, 2), [*body, *head])
    steps = ("resize?height=48&width=48", *(("enlarge?factor=2",) if swept else ()))
    return Model(whole, NORB, preprocessing=steps, examples=_share("norb", fraction))


def _scaled(filters: int, factor: float | None) -> int:
    return max(1, round(filters * (factor or 1)))


def _share(dataset: str, fraction: float) -> int | None:
    """How many training examples a fraction is; exactly, for 0.57 of 60,000 is 34,200."""
    return None if fraction == 1 else max(1, int(TRAINING[dataset] * Fraction(str(fraction))))


_SWEEPS = (
    Option("layers", int, "times that each convolution is repeated", published=(1, 2, 3, 4, 5), least=1),
    Option("filters", float, "factor on the filters", published=(0.25, 0.5, 1.0, 2.0, 4.0), least=0.01),
    Option("kernel", int, "rows and columns more of each kernel", published=(-3, -2, -1, 0, 1, 2), least=-4),
    Option(
        "fraction",
        float,
        "share of the training examples",
        default=1.0,
        published=(0.33, 0.4, 0.57, 0.64, 0.83, 1.0),
        least=0.0001,
    ),
)

ENTRIES = (
    Entry(
        name="backends/dnn-w20",
        summary="digits, 20 pixels wide, through two convolutions with a scaled tanh",
        source="backends: DNN-W20, master of MNIST",
        dataset="mnist",
        preprocessing=("width?size=20",),
        make=dnn_w20,
    ),
    Entry(
        name="backends/cnn-softmax",
        summary="two 5x5 convolutions with pooling and a dense layer of 500",
        source="backends: CNN-Softmax, basic of MNIST",
        dataset="mnist",
        preprocessing=("gcn",),
        make=cnn_softmax,
        parameters=_SWEEPS,
    ),
    Entry(
        name="backends/all-cnn-c",
        summary="convolutions only, strides in the place of pooling",
        source="backends: All-CNN-C, master of CIFAR-10",
        dataset="cifar10",
        preprocessing=("gcn", "zca"),
        make=all_cnn_c,
        parameters=(Option("dense_output", bool, "end with a dense layer, as the text has it", default=False),),
    ),
    Entry(
        name="backends/cnn-relu",
        summary="three 5x5 convolutions with pooling and dropout, two dense layers of 2048",
        source="backends: CNN + ReLU, basic of CIFAR-10",
        dataset="cifar10",
        make=cnn_relu,
        parameters=_SWEEPS,
    ),
    Entry(
        name="backends/wrn-16-8",
        summary="wide residual network, 16 layers deep, 8 times as wide",
        source="backends: WRN-16-8, master of SVHN",
        dataset="svhn",
        preprocessing=("scale",),
        make=wrn_16_8,
    ),
    Entry(
        name="backends/basic-svhn",
        summary="5x5 and 7x7 convolutions with batch normalisation, two dense layers of 1024",
        source="backends: basic-SVHN",
        dataset="svhn",
        preprocessing=("scale",),
        make=basic_svhn,
        parameters=_SWEEPS,
    ),
    Entry(
        name="backends/ap-relu",
        summary="three 5x5 convolutions with average pooling and local response normalisation",
        source="backends: AP-ReLU, master of NORB",
        dataset="norb",
        make=ap_relu,
    ),
    Entry(
        name="backends/mp-relu",
        summary="three 5x5 convolutions with max pooling and local response normalisation",
        source="backends: MP-ReLU, basic of NORB",
        dataset="norb",
        make=mp_relu,
        parameters=_SWEEPS,
    ),
)
