"""The networks of the comparison of processors, graphics cards and both together."""

from __future__ import annotations

from timetrial.spec.layers import Flatten
from timetrial.spec.recipe import Recipe, Sgd
from timetrial.zoo.entry import Entry, Model, Option
from timetrial.zoo.pieces import dense, network
from timetrial.zoo.resnet import resnet

# Neither network's loss was published whole: the image classifier has the usual one, the perceptron PyTorch's MSE.
RESNET = Recipe(batch=128, epochs=100, optimiser=Sgd(rate=0.05))
MLP = Recipe(batch=50, epochs=8, loss="mse", labels="one_hot", optimiser=Sgd(rate=0.5))


def resnet_34(height: int, width: int, channels: int, classes: int) -> Model:
    colours = ("grey",) if channels == 1 else ()
    parts = "split?train=0.85&validation=0.02"
    steps = (parts, *colours, "scale", f"resize?height={height}&width={width}", "half")
    return Model(resnet(34, (height, width, channels), classes), RESNET, preprocessing=steps)


def mlp(hidden: int) -> Model:
    return Model(network((28, 28, 1), [Flatten(), dense(hidden, "sigmoid"), dense(10, "softmax")]), MLP)


ENTRIES = (
    Entry(
        name="parallel/resnet-34",
        summary="ResNet-34 for silhouettes of nine kinds of fish and seafood",
        source="parallel: ResNet-34",
        dataset="fish-masks",
        make=resnet_34,
        parameters=(
            Option("height", int, "rows of an image; 222 and 112 were tried too", default=148, least=1),
            Option("width", int, "columns of an image; 295 and 148 were tried with those", default=197, least=1),
            Option("channels", int, "channels of an image", default=1, least=1),
            Option("classes", int, "classes; the cracks in concrete had 2", default=9, least=2),
        ),
    ),
    Entry(
        name="parallel/mlp",
        summary="perceptron 784-192-10 for digits",
        source="parallel: framework comparison",
        dataset="mnist",
        preprocessing=("scale",),
        make=mlp,
        parameters=(Option("hidden", int, "width of the hidden layer", default=192, least=1),),
    ),
)
