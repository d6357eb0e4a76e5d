"""The zoo against the published figures, and the catalogue's names, options and errors."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.unit import golden_counts as golden
from timetrial.spec.initialisers import Normal, Uniform
from timetrial.spec.layers import Conv2d, Dense, Lstm
from timetrial.spec.network import Network
from timetrial.spec.recipe import Adam, Exponential, RmsProp, Sgd
from timetrial.zoo import Entry, OptionError, UnknownModel, entries, find, lookup, names
from timetrial.zoo.backends import widths
from timetrial.zoo.solar import doubled


def dense_widths(network: Network) -> tuple[int, ...]:
    return tuple(layer.units for layer in network.layers if isinstance(layer, Dense))


# Parameter counts


def test_there_are_107_printed_counts_of_the_backends() -> None:
    every = golden.backends()
    assert len(every) == len(dict(every)) == 107


@pytest.mark.parametrize(("name", "count"), golden.backends())
def test_backends_counts(name: str, count: int) -> None:
    assert find(name).network.parameter_count(trainable_only=name != golden.WITH_STATISTICS) == count


def test_the_count_with_statistics_is_8320_above_the_trainable_one() -> None:
    network = find(golden.WITH_STATISTICS).network
    assert network.parameter_count() - network.parameter_count(trainable_only=True) == 8_320


def test_basic_networks_and_their_master_twin() -> None:
    basic = {"cnn-softmax": 569_606, "cnn-relu": 10_071_562, "basic-svhn": 35_023_594, "mp-relu": 243_698}
    for name, count in {**basic, "ap-relu": 243_698}.items():
        assert find(f"backends/{name}").network.parameter_count(trainable_only=True) == count


def test_all_cnn_c_with_the_dense_layer_of_its_text() -> None:
    assert find("backends/all-cnn-c", dense_output=True).network.parameter_count() == 1_369_848


@pytest.mark.parametrize(("hidden", "count"), golden.PYRAMIDS.items())
def test_solar_pyramids(hidden: str, count: int) -> None:
    network = find(f"solar/pyramid-{hidden}").network
    assert network.parameter_count() == count
    assert dense_widths(network) == (*map(int, hidden.split("-")), 1)


def test_solar_has_thirty_pyramids() -> None:
    assert sorted(n for n in names() if n.startswith("solar/pyramid-")) == sorted(
        f"solar/pyramid-{hidden}" for hidden in golden.PYRAMIDS
    )
    assert doubled((50, 25, 13), 3) == [(50, 25, 13), (100, 50, 26), (200, 100, 52)]


def test_solar_pyramid_of_the_worked_example() -> None:
    assert find("solar/pyramid-4-4?inputs=3").network.parameter_count() == 41


def test_solar_cnn_layer_by_layer() -> None:
    network = find("solar/cnn").network
    shape, rows = network.input.shape, []
    for layer in network.layers:
        count = sum(p.size for p in layer.parameters(shape))
        shape = layer.output_shape(shape)
        rows.append((layer.kind, shape, count))
    assert rows == golden.SOLAR_CNN
    assert network.parameter_count() == network.parameter_count(trainable_only=True) == 4_352_641


@pytest.mark.parametrize(("name", "count", "multiply_adds", "sides"), golden.PROFILING)
def test_profiling_variants(name: str, count: int, multiply_adds: int, sides: tuple[int, ...]) -> None:
    network = find(name).network
    assert network.parameter_count() == count
    assert sum(node.multiply_adds for node in network.nodes if node.op == "conv2d") == multiply_adds
    order = ("conv2d_1", "max_pool_1", "conv2d_2", "max_pool_2")
    assert tuple(network.graph.shapes[node][0] for node in order) == sides


def test_profiling_baseline_layer_by_layer() -> None:
    network = find("profiling/cnn").network
    measured = {n.name: (sum(p.size for p in n.parameters), n.multiply_adds) for n in network.nodes if n.parameters}
    assert measured == golden.PROFILED_LAYERS
    assert network.multiply_adds == 18_470_784
    normalised_after_pool = [n.op for n in network.nodes if n.op in ("max_pool", "lrn")]
    assert normalised_after_pool == ["max_pool", "lrn", "lrn", "max_pool"]


@pytest.mark.parametrize(("name", "node", "size", "window", "stride", "out", "pads"), golden.SAME_PADS)
def test_same_padding_of_the_profiled_layers(
    name: str, node: str, size: int, window: int, stride: int, out: int, pads: tuple[int, int]
) -> None:
    found = next(n for n in find(name).network.nodes if n.name == node)
    assert found.in_shapes[0][:2] == (size, size)
    assert found.attrs.get("kernel", found.attrs.get("window")) == (window, window)
    assert found.attrs["stride"] == (stride, stride)
    assert (found.shape[:2], found.attrs["pads"]) == ((out, out), (pads, pads))


def test_the_larger_first_pooling_has_no_padding() -> None:
    node = next(n for n in find("profiling/cnn-large-pool").network.nodes if n.name == "max_pool_1")
    assert (node.attrs["window"], node.attrs["pads"], node.shape) == ((4, 4), ((0, 0), (0, 0)), (11, 11, 64))


@pytest.mark.parametrize(("cell", "figures"), golden.LIBRARIES_MLP.items())
def test_libraries_mlps(cell: tuple[int, int], figures: tuple[int, int]) -> None:
    network = find("libraries/mlp-{}x{}".format(*cell)).network
    assert (network.parameter_count(), network.multiply_adds) == figures
    assert (network.input.shape, network.output_shape) == ((8,), (7,))


@pytest.mark.parametrize(("cell", "figures"), golden.LIBRARIES_CNN.items())
def test_libraries_cnns(cell: tuple[int, int], figures: tuple[int, int]) -> None:
    network = find("libraries/cnn-{}x{}".format(*cell)).network
    assert (network.parameter_count(), network.multiply_adds) == figures


@pytest.mark.parametrize(("name", "count"), golden.OTHERS.items())
def test_other_counts(name: str, count: int) -> None:
    assert find(name).network.parameter_count(trainable_only=True) == count


# Shapes and starting widths


@pytest.mark.parametrize("input", golden.FEED_FORWARD)
@pytest.mark.parametrize("depth", range(1, 7))
def test_width_law(input: str, depth: int) -> None:
    printed = golden.FEED_FORWARD[input][depth - 1][0]
    model = find("backends/fnn-" + str(depth), input=input)
    assert dense_widths(model.network) == (*printed, 10)
    assert sum(printed) == {"cifar10": 960, "svhn": 154, "mnist": 784}[input]
    assert model.dataset == input


@pytest.mark.parametrize("depth", range(1, 9))
def test_width_law_uses_up_any_input(depth: int) -> None:
    for inputs in (300, 511, 1000, 4096):
        hidden = widths(inputs, depth)
        assert sum(hidden) == inputs
        assert all(abs(wide / 2 - narrow) <= 1.5 for wide, narrow in pairwise(hidden))


def test_resnet_34_reads_grey_images_and_halves_them_five_times() -> None:
    network = find("parallel/resnet-34").network
    assert (network.input.shape, network.output_shape) == ((148, 197, 1), (9,))
    last = next(n for n in network.nodes if n.op == "global_avg_pool")
    assert last.in_shapes[0] == (5, 7, 512)
    assert sum(n.op == "conv2d" for n in network.nodes) == 1 + 2 * (3 + 4 + 6 + 3) + 3


def test_libraries_initialisers_are_over_the_whole_input() -> None:
    network = find("libraries/cnn-2x8").network
    layers = [layer for layer in network.layers if isinstance(layer, Conv2d | Dense)]
    stds = [layer.kernel_init.std for layer in layers if isinstance(layer.kernel_init, Normal)]
    inputs = (32 * 32 * 3, 14 * 14 * 24, 600, 120, 84)
    assert stds == pytest.approx([math.sqrt(2 / n) for n in inputs])
    assert stds[0] == pytest.approx(0.0255, abs=5e-5)
    assert layers[0].bias_init.kind == "zeros"


def test_gpt_answers_at_every_position() -> None:
    model = find("modern/gpt?vocabulary=50&steps=16&width=32&heads=2&blocks=1")
    assert (model.network.input.shape, model.network.input.tokens) == ((16,), 50)
    assert model.network.output_shape == (16, 50)
    attention = next(n for n in model.network.nodes if n.op == "attention")
    assert attention.attrs["causal"] is True
    assert attention.inputs[0].startswith("residual_1/layer_norm")
    block = 2 * 2 * 32 + 4 * (32 * 32 + 32) + (32 * 128 + 128) + (128 * 32 + 32)
    assert model.network.parameter_count() == 50 * 32 + 16 * 32 + block + 2 * 32 + 32 * 50 + 50


def test_gru_counts_both_biases() -> None:
    network = find("modern/gru").network
    assert network.parameter_count() == 5000 * 64 + 3 * (64 * 64 + 64 * 64 + 2 * 64) + 65


def test_quick_networks() -> None:
    shapes = {name: find(f"quick/{name}").network for name in ("mlp", "cnn", "lstm")}
    assert [network.input.shape for network in shapes.values()] == [(28, 28, 1), (28, 28, 1), (28, 28)]
    assert {network.output_shape for network in shapes.values()} == {(10,)}
    model = find("quick/cnn")
    assert (model.dataset, model.examples, model.recipe.batch) == ("fashion-mnist-6000", 5000, 64)


# Recipes


def test_recipes_of_the_studies() -> None:
    def facts(name: str) -> tuple[int, int, str]:
        recipe = find(name).recipe
        return recipe.batch, recipe.epochs, recipe.loss

    assert facts("solar/pyramid-800-400") == (1000, 1, "mse")
    assert facts("solar/cnn") == (512, 1, "mse")
    assert facts("parallel/resnet-34") == (128, 100, "cross_entropy")
    assert facts("parallel/mlp") == (50, 8, "mse")
    assert facts("profiling/cnn") == (128, 256, "cross_entropy")
    assert facts("libraries/mlp-4x100")[1:] == (10, "cross_entropy")
    assert facts("backends/fnn-6") == (32, 50, "cross_entropy")
    assert facts("backends/imdb-lstm") == (64, 3, "binary_cross_entropy")
    assert facts("backends/hmdir-lstm") == (256, 100, "mae")


@pytest.mark.parametrize(
    ("name", "optimiser"),
    [
        ("parallel/resnet-34", Sgd(rate=0.05)),
        ("parallel/mlp", Sgd(rate=0.5)),
        ("profiling/cnn", Sgd(rate=0.1)),
        ("libraries/cnn-1x2", Sgd(rate=0.001)),
        ("backends/cnn-softmax", Sgd(rate=0.01, momentum=0.9, weight_decay=0.0005)),
        ("backends/wrn-16-8", Sgd(rate=0.01, momentum=0.9, nesterov=True, weight_decay=0.0005)),
        ("backends/basic-svhn", Adam(rate=0.01, weight_decay=0.0005)),
        ("backends/ap-relu", Sgd(rate=0.001, momentum=0.9, weight_decay=0.01)),
        ("backends/hmdir-lstm", RmsProp(rate=0.001)),
    ],
)
def test_optimisers(name: str, optimiser: Sgd | Adam | RmsProp) -> None:
    assert find(name).recipe.optimiser == optimiser


def test_dnn_w20_reaches_its_floor_with_its_last_epoch() -> None:
    recipe = find("backends/dnn-w20").recipe
    assert isinstance(recipe.schedule, Exponential)
    reached = math.log(recipe.schedule.floor / recipe.optimiser.rate) / math.log(recipe.schedule.factor)
    assert recipe.epochs == math.ceil(reached) == 500


def test_hmdir_lstm_swaps_the_usual_initialisers() -> None:
    lstm = find("backends/hmdir-lstm").network.layers[0]
    assert isinstance(lstm, Lstm)
    assert lstm.kernel_init == Uniform(low=-0.05, high=0.05)
    assert lstm.recurrent_init.kind == "glorot_uniform"
    assert (lstm.activation, lstm.recurrent_activation) == ("sigmoid", "hard_sigmoid")


@pytest.mark.parametrize("name", golden.EXAMPLES)
def test_training_shares(name: str) -> None:
    found = tuple(find(f"backends/{name}", fraction=share).examples for share in golden.FRACTIONS)
    assert found == golden.EXAMPLES[name]
    assert find(f"backends/{name}?fraction=1").examples is None


# Catalogue


@pytest.mark.parametrize("name", names())
def test_every_listed_name_is_found(name: str) -> None:
    model = find(name)
    assert model.dataset
    assert Network.model_validate_json(model.network.model_dump_json()) == model.network
    assert find(model.network.name).network == model.network


def test_names_are_unique_lower_case_and_belong_to_their_study() -> None:
    every = names()
    assert len(every) == len(set(every))
    assert all(name == name.lower() and " " not in name and "_" not in name.partition("?")[0] for name in every)
    studies = {entry.study for entry in entries()}
    assert studies == {"quick", "solar", "parallel", "profiling", "backends", "libraries", "modern"}
    assert {name.partition("/")[0] for name in every} == studies


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_every_entry_says_what_it_is(entry: Entry) -> None:
    assert entry.summary
    assert entry.source
    assert entry.dataset
    assert all(option.meaning for option in entry.parameters)
    assert set(entry.in_name) <= {option.name for option in entry.parameters}
    assert all(lookup(name) is entry for name in entry.names)


def test_options_in_the_name_and_apart_are_the_same() -> None:
    written = find("backends/cnn-softmax?filters=0.5&layers=2")
    apart = find("backends/cnn-softmax", filters=0.5, layers=2)
    assert written == apart == find("backends/cnn-softmax?layers=2", filters="1/2")
    assert written.network.name == "backends/cnn-softmax?layers=2&filters=0.5"


def test_fixed_names_stand_for_options() -> None:
    assert find("backends/fnn-3-cifar10") == find("backends/fnn-3", input="cifar10")
    assert find("profiling/cnn-stride-2-filters-32") == find("profiling/cnn", stride=2, filters=32)
    assert find("profiling/cnn-stride-2?filters=32") == find("profiling/cnn", stride=2, filters=32)


def test_families_go_beyond_the_published_cells() -> None:
    assert dense_widths(find("libraries/mlp-3x77").network) == (77, 77, 77, 7)
    assert dense_widths(find("solar/pyramid-9-8-7-6").network) == (9, 8, 7, 6, 1)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("backends/cnn-softmx", "'backends/cnn-softmax'"),
        ("libraries/mlp-2x", "libraries/mlp-2x"),
        ("solar/piramid-800-400", "'solar/pyramid-800-400'"),
        ("cnn-softmax", "'backends/cnn-softmax'"),
        ("zzzzzz", "the studies are quick, solar"),
    ],
)
def test_unknown_names_get_close_matches(name: str, hint: str) -> None:
    with pytest.raises(UnknownModel) as error:
        find(name)
    assert f"'{name}'" in str(error.value)
    assert hint in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("backends/cnn-softmax?filter=2", "did you mean 'filters'? Its options: layers (a whole number; default none)"),
        ("backends/cnn-softmax?layers=two", "option 'layers' wants a whole number, not 'two'. Its options: layers"),
        ("backends/cnn-softmax?layers=1.5", "option 'layers' wants a whole number, not '1.5'"),
        ("backends/cnn-softmax?layers=0", "option 'layers' is at least 1, not 0"),
        ("backends/cnn-softmax?fraction=none", "option 'fraction' wants a number, not none"),
        ("backends/all-cnn-c?dense_output=maybe", "wants true or false, not 'maybe'"),
        ("backends/fnn-2?input=norb", "is one of mnist, cifar10, svhn, colours, not 'norb'"),
        ("backends/fnn-2-svhn?input=mnist", "option 'input' is given as svhn and as mnist"),
        ("backends/fnn-0", "option 'depth' is at least 1, not 0"),
        ("backends/cnn-softmax?layers", "write options as 'name?option=value&option=value', not 'layers'"),
        ("backends/dnn-w20?layers=2", "'backends/dnn-w20' has no option 'layers'. It has no options."),
        ("backends/cnn-softmax?width=2", "'backends/cnn-softmax' has no option 'width'. Its options: layers"),
    ],
)
def test_bad_options_say_what_there_is(name: str, message: str) -> None:
    with pytest.raises(OptionError) as error:
        find(name)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "libraries/cnn-9x2",
            r"layer 'max_pool_3': a window of 2 does not fit into a height of 1; use a smaller window.*\. ",
        ),
        (
            "modern/gpt?heads=3",
            r"layer 'residual_1/attention_1': 3 heads do not divide a width of 128; use other heads.*\. ",
        ),
        ("backends/fnn-99", r"layer 'dense': 'units': input should be greater than 0, not 0\. "),
        (
            "backends/cnn-softmax?kernel=99",
            r"layer 'conv2d_1': a window of 104 does not fit into a height of 28; use.*\. ",
        ),
    ],
)
def test_options_that_make_no_network_are_refused_in_our_own_words(name: str, said: str) -> None:
    with pytest.raises(OptionError) as error:
        find(name)
    assert re.fullmatch(
        rf"'{re.escape(name)}' cannot be made: {said}Take other options\. Its options: .*\.", str(error.value)
    )


@pytest.mark.parametrize("value", [1, 2, 3, 7, 99, 1000])
@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_whatever_number_an_option_is_given_there_is_a_network_or_words(entry: Entry, value: int) -> None:
    """One after the other, each in the range that is usual for sizes; too large is a matter of memory, not of words."""
    name, said = next(iter(entry.examples)) if entry.in_name else entry.name, [""]
    for option in entry.parameters:
        if option.name in entry.in_name or option.type not in (int, float):
            continue
        try:
            assert find(name, **{option.name: value}).network.nodes
        except OptionError as error:
            said.append(str(error))
    assert not any("validation error" in text or "pydantic" in text for text in said)


def test_a_network_too_deep_for_its_image_is_refused_by_its_shapes() -> None:
    with pytest.raises(ValueError, match=r"max_pool_3.*does not fit"):
        find("libraries/cnn-3x8")


def test_importing_the_zoo_makes_nothing() -> None:
    code = "import sys, timetrial.zoo; print(sorted({'pydantic', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
