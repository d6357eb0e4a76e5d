"""What of the language fits scikit-learn's perceptrons, and how their losses and optimisers become the language's."""

from .base import Unsupported

HIDDEN = {"relu": "relu", "tanh": "tanh", "sigmoid": "logistic", "identity": "identity"}


def read_network(network):
    """([(name of a dense node, units)], the word for the activation of all hidden layers)."""
    layers, functions, before = [], [], "input"
    for node in network["nodes"]:
        if node["inputs"] != [before]:
            _refuse("branches, as at {!r}".format(node["name"]))
        before = node["name"]
        if node["op"] == "dense":
            _check_dense(node)
            layers.append((node["name"], node["attrs"]["units"]))
            functions.append("identity")
        elif node["op"] == "activation":
            _check_activation(node, functions)
            functions[-1] = node["attrs"]["function"]
        elif node["op"] != "flatten" or layers:
            _refuse("layer {!r}".format(node["op"]))
    if not layers or functions[-1] != "identity":
        _refuse("activation after the last layer, but the one that its loss brings")
    hidden = sorted(set(functions[:-1]))
    if len(hidden) > 1:
        _refuse("different activations in different layers ({})".format(", ".join(hidden)))
    return layers, HIDDEN[hidden[0] if hidden else "identity"]


def _check_dense(node):
    if not node["attrs"]["bias"]:
        _refuse("dense layer without a bias")
    if len(node["shape"]) != 1:
        _refuse("dense layer over sequences")


def _check_activation(node, functions):
    function = node["attrs"]["function"]
    if function not in HIDDEN:
        _refuse("activation {!r} in a hidden layer".format(function))
    if not functions or functions[-1] != "identity":
        _refuse("activation but right after a dense layer")


def _refuse(what):
    raise Unsupported("scikit-learn's perceptrons have no {}: use another engine".format(what))


def gradient_scale(network, recipe, width):
    """The language's loss over scikit-learn's. Its squares are halved; its gradients are of sums over the outputs,
    where the language means the mean."""
    heads = {"cross_entropy": "softmax", "binary_cross_entropy": "sigmoid", "mse": "identity"}
    loss, head = recipe["loss"], network["head"]
    if loss not in heads:
        _refuse("loss {!r}".format(loss))
    if head != heads[loss]:
        _refuse("loss {} on an output that ends with {}".format(loss, head))
    if loss == "cross_entropy":
        if width == 2:
            _refuse("softmax over two classes: it has one output for them, a sigmoid's")
        return 1.0
    return (2.0 if loss == "mse" else 1.0) / width


def loss_scale(recipe, width):
    """Likewise of the value that it tells, where squares are averaged over the outputs and logarithms are summed."""
    return {"cross_entropy": 1.0, "mse": 2.0, "binary_cross_entropy": 1.0 / width}[recipe["loss"]]


def check_optimiser(options):
    if options["kind"] not in ("sgd", "adam"):
        _refuse("optimiser {!r}".format(options["kind"]))
    if options["weight_decay"]:
        _refuse("weight decay on biases, and the language's decays them too")


def make_optimiser(parameters, options, scale):
    """With the language's rate: scikit-learn's gradients are `scale` times smaller than they should be. Adam does not
    see that but by its epsilon."""
    from sklearn.neural_network import _stochastic_optimizers as optimisers

    if options["kind"] == "sgd":
        return optimisers.SGDOptimizer(
            parameters, options["rate"] * scale, "constant", options["momentum"], options["nesterov"]
        )
    return optimisers.AdamOptimizer(parameters, options["rate"], options["beta1"], options["beta2"])


def outer_epsilon(options, scale, steps):
    """scikit-learn adds epsilon before the second moment is corrected; scaled by that it means the language's."""
    return options["epsilon"] / scale * (1.0 - options["beta2"] ** (steps + 1)) ** 0.5
