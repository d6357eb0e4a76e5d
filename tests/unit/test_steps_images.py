"""Steps on images and tables, each against another computation of the same thing."""

from __future__ import annotations

import colorsys
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from skimage.feature import hog as skimage_hog

from timetrial.data.samples import Array, Samples
from timetrial.data.steps import StepError, read_chain
from timetrial.data.steps.gist import filter_bank, region_means
from timetrial.data.steps.images import weights


def images(count: int, *shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def run(steps: str | list[str], train: Array, test: Array | None = None, seed: int = 0) -> Samples:
    test = train[:3] if test is None else test
    labels = np.arange(len(train)) % 2
    return read_chain([steps] if isinstance(steps, str) else steps).run(
        Samples(train, labels, test, labels[: len(test)]), seed
    )


# --- size, shape and range --------------------------------------------------------------------------------------------


def test_raw_keeps_values_and_scale_divides_them() -> None:
    x = images(5, 4, 3, 3)
    assert np.array_equal(run("raw", x).x_train, x)
    assert run("raw", x).x_train.dtype == np.float32
    assert np.allclose(run("scale", x).x_train, x / 255, atol=1e-7)
    assert np.allclose(run("scale?most=16", x).x_train, x / 16)


def test_only_scale_divides() -> None:
    x = images(4, 6, 6, 3)
    assert np.array_equal(run("flatten", x).x_train, x.reshape(4, -1))
    assert run("crop?size=4", x).x_train.max() > 1


def test_half_keeps_what_half_precision_can() -> None:
    x = np.random.default_rng(1).normal(0, 100, (6, 5)).astype(np.float32)
    found = run("half", x).x_train
    assert found.dtype == np.float32
    assert np.array_equal(found, [[float(np.float16(value)) for value in row] for row in x])
    with pytest.raises(StepError, match="beyond 65,504"):
        run("half", x * 1e4)


def test_grey_is_pillows_luminance() -> None:
    x = images(6, 9, 7, 3)
    found = run("grey", x).x_train[..., 0]
    pillow = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in x])
    assert np.abs(found - pillow).max() <= 0.51  # Pillow rounds to whole values
    plain = images(4, 9, 7)
    assert np.array_equal(run("grey", plain).x_train[..., 0], plain)


@pytest.mark.parametrize(
    ("before", "after"),
    [((32, 32), (48, 48)), ((108, 108), (48, 48)), ((59, 44), (19, 14)), ((5, 7), (5, 3)), ((8, 8), (1, 1))],
)
def test_resize_is_pillows_bilinear(before: tuple[int, int], after: tuple[int, int]) -> None:
    x = np.random.default_rng(2).random((3, *before, 2)).astype(np.float32)
    found = run(f"resize?height={after[0]}&width={after[1]}", x).x_train
    for image, made in zip(x, found, strict=True):
        for channel in range(2):
            plane = Image.fromarray(image[..., channel])
            pillow = np.asarray(plane.resize((after[1], after[0]), Image.Resampling.BILINEAR))
            assert np.allclose(made[..., channel], pillow, atol=2e-6)


def test_enlarge_is_a_resize_to_twice_the_size() -> None:
    x = images(3, 6, 5, 3)
    assert np.array_equal(run("enlarge", x).x_train, run("resize?height=12&width=10", x).x_train)


@given(old=st.integers(1, 60), new=st.integers(1, 60))
def test_weights_of_resizing_are_means(old: int, new: int) -> None:
    matrix = weights(old, new)
    assert matrix.shape == (new, old)
    assert np.allclose(matrix.sum(1), 1, atol=1e-5)
    assert (matrix >= 0).all()
    if old == new:
        assert np.array_equal(matrix, np.eye(old))


def test_width_stretches_the_ink_alone() -> None:
    x = np.zeros((3, 6, 9), np.uint8)
    x[0, :, 2:6] = np.arange(24).reshape(6, 4) + 1
    x[1] = 7
    found = run("width?size=8", x).x_train
    assert found.shape == (3, 6, 8, 1)
    ink = Image.fromarray(x[0, :, 2:6].astype(np.float32)).resize((8, 6), Image.Resampling.BILINEAR)
    assert np.allclose(found[0, ..., 0], ink, atol=1e-5)
    assert np.allclose(found[1], 7)
    assert not found[2].any()  # an empty image stays one


def test_rows_and_flatten_keep_the_order() -> None:
    x = images(2, 3, 4, 2)
    assert np.array_equal(run("rows", x).x_train, x.reshape(2, 3, 8))
    assert np.array_equal(run("flatten", x).x_test, x[:2].reshape(2, 24))


# --- centre and scale -------------------------------------------------------------------------------------------------


def test_mean_image_is_that_of_the_training_samples() -> None:
    train, test = images(40, 4, 5, 3), images(10, 4, 5, 3, seed=9)
    found = run("subtract-mean", train, test)
    mean = sum(image.astype(float) for image in train) / 40
    assert np.allclose(found.x_test, test - mean, atol=1e-4)
    assert np.allclose(found.x_train.mean(0), 0, atol=1e-4)


@pytest.mark.parametrize("subtract", ["column", "sample", "nothing"])
@pytest.mark.parametrize("channels", ["apart", "together"])
def test_gcn_against_a_loop(subtract: str, channels: str) -> None:
    train, test = images(12, 5, 4, 3), images(4, 5, 4, 3, seed=3)
    found = run(f"gcn?subtract={subtract}&channels={channels}", train, test)
    test = test.astype(float)
    mean = train.astype(float).mean(0) if subtract == "column" else 0
    for raw, made in zip(test, found.x_test, strict=True):
        groups = [slice(c, c + 1) for c in range(3)] if channels == "apart" else [slice(0, 3)]
        for group in groups:
            values = (raw - mean)[..., group]
            if subtract == "sample":
                values = values - sum(values.ravel()) / values.size
            spread = math.sqrt(sum((v - values.mean()) ** 2 for v in values.ravel()) / values.size)
            assert np.allclose(made[..., group], values / spread, rtol=1e-5, atol=1e-6)


def test_standardise_over_values_and_over_channels() -> None:
    train, test = images(30, 4, 4, 3) / np.float32(255), images(5, 4, 4, 3, seed=4) / np.float32(255)
    for over, axes in (("value", (0,)), ("channel", (0, 1, 2))):
        found = run(f"standardise?over={over}", train, test)
        assert np.allclose(found.x_train.mean(axes), 0, atol=1e-5)
        assert np.allclose(found.x_train.std(axes), 1, atol=1e-5)
        assert np.allclose(found.x_test, (test - train.mean(axes)) / train.std(axes), atol=1e-4)


def test_each_sample_is_standardised_for_itself() -> None:
    x = images(5, 6, 6, 3)
    x[4] = 93  # a deviation below 1 / sqrt(n) is not divided by
    found = run("standardise-each", x).x_train
    for raw, made in zip(x, found, strict=True):
        floor = 1 / math.sqrt(108)
        assert np.allclose(made, (raw - raw.mean()) / max(raw.std(), floor), atol=1e-5)
    assert not found[4].any()


@pytest.mark.parametrize(
    "step",
    [
        "gcn",
        "gcn?subtract=sample",
        "zca",
        "zca?epsilon=0",
        "standardise",
        "standardise?over=channel",
        "standardise-each",
        "hog",
        "gist",
        "contrast",
    ],
)
def test_constant_images_are_never_divided_by_zero(step: str) -> None:
    found = (
        run(step, np.full((20, 32, 32, 3), 77, np.uint8))
        if step in ("hog", "gist")
        else run(step, np.full((20, 4, 4, 3), 0.1, np.float32))
    )
    assert np.isfinite(found.x_train).all()
    assert np.isfinite(found.x_test).all()


def test_columns_of_tables() -> None:
    x = np.arange(12.0).reshape(4, 3)
    assert run("drop?column=1", x).x_train.tolist() == [[0, 2], [3, 5], [6, 8], [9, 11]]
    with pytest.raises(StepError, match="leaves out column 3, but there are 3"):
        run("drop?column=3", x)


# --- whitening --------------------------------------------------------------------------------------------------------


def correlated(count: int, shape: tuple[int, ...], seed: int) -> Array:
    rng = np.random.default_rng(5)
    size = math.prod(shape)
    mixing = np.eye(size) + rng.normal(size=(size, size)) / np.sqrt(size) / 2
    return (
        (np.random.default_rng(seed).normal(size=(count, size)) @ mixing + 3).reshape(count, *shape).astype(np.float32)
    )


def test_whitened_samples_have_the_identity_as_covariance() -> None:
    x = correlated(5000, (4, 4, 3), 1)
    found = run("zca?epsilon=0", x).x_train.reshape(5000, -1).astype(float)
    assert np.allclose(found.mean(0), 0, atol=1e-3)
    assert np.abs(found.T @ found / 5000 - np.eye(48)).max() < 2e-3


@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 3.0])
def test_whitening_against_a_singular_value_decomposition(epsilon: float) -> None:
    """The other way to it: no covariance, but the singular values of the samples, in double precision."""
    train, test = correlated(300, (6, 2), 2), correlated(7, (6, 2), 3)
    found = run(f"zca?epsilon={epsilon}", train, test).x_test.reshape(7, -1)
    flat = train.reshape(300, -1).astype(float)
    mean = flat.mean(0)
    _, values, directions = np.linalg.svd(flat - mean, full_matrices=False)
    expected = (test.reshape(7, -1) - mean) @ directions.T / np.sqrt(values**2 / 300 + epsilon) @ directions
    assert np.allclose(found, expected, rtol=2e-3, atol=2e-3)


def test_whitening_leaves_out_what_does_not_vary() -> None:
    x = correlated(500, (6,), 4)
    x[:, 2] = 5
    found = run("zca?epsilon=0", x).x_train
    assert np.abs(found[:, 2]).max() < 1e-3
    rest = np.delete(found, 2, axis=1).astype(float)
    assert np.allclose(rest.T @ rest / 500, np.eye(5), atol=1e-3)


def test_whitening_of_what_is_too_large_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(StepError, match="more than 12,288"):
        read_chain(["zca"]).shape((100, 100, 3))


# --- features ---------------------------------------------------------------------------------------------------------


def test_hog_is_that_of_scikit_image_up_to_the_norm_of_each_cell() -> None:
    x = images(4, 32, 32, 3)
    found = run("hog?hues=0", x).x_train.reshape(4, 16, 9)
    for raw, made in zip(x, found, strict=True):
        other = skimage_hog(raw / 255.0, 9, (8, 8), (1, 1), block_norm="L1", channel_axis=-1).reshape(16, 9)
        assert np.allclose(made / made.sum(1, keepdims=True), other, atol=2e-4)


def test_hog_has_154_numbers_and_magnitudes_in_their_bins() -> None:
    """One slanted plane: every inner gradient is the same and falls into one bin."""
    down, across = np.mgrid[:32, :32]
    plane = np.repeat((3 * down + 1 * across)[..., None] / 255, 3, axis=2).astype(np.float32)
    found = run("hog", np.stack([plane] * 2)).x_train
    assert found.shape == (2, 154)
    cells = found[0, :144].reshape(4, 4, 9)
    angle = math.degrees(math.atan2(3, 1)) % 180
    magnitude = 2 * math.hypot(3, 1) / 255
    assert math.isclose(cells[1, 1, int(angle // 20)], magnitude, rel_tol=1e-4)
    assert np.allclose(np.delete(cells[1, 1], int(angle // 20)), 0)


def test_hues_are_those_of_colorsys() -> None:
    x = images(3, 8, 8, 3)
    x[0, :2] = 50  # grey: hue 0
    found = run("hog?grid=2", x).x_train[:, -10:]
    for raw, made in zip(x, found, strict=True):
        bins = [min(int(colorsys.rgb_to_hsv(*(pixel / 255))[0] * 10), 9) for pixel in raw.reshape(-1, 3)]
        assert np.allclose(made, np.bincount(bins, minlength=10) / 64, atol=1 / 64 + 1e-6)
        assert math.isclose(made.sum(), 1, rel_tol=1e-5)


def test_gist_has_960_numbers_and_is_blind_to_brightness() -> None:
    x = images(3, 32, 32, 3) // 2
    found = run("gist", x).x_train
    assert found.shape == (3, 960)
    assert np.allclose(found, run("gist", x + 100).x_train, atol=1e-5)
    assert np.allclose(run("gist", x * 2).x_train, 2 * found, atol=1e-5)


def test_gist_against_a_convolution_written_out() -> None:
    """One filter, as a kernel in the image's own plane, by sums over all pixels."""
    x = images(1, 8, 8)
    found = run("gist?border=0&grid=2", x).x_train.reshape(20, 4)
    image = x[0] / 255
    for number in (0, 5, 19):
        kernel = np.fft.ifft2(filter_bank(8, 8, (8, 8, 4))[number])
        answer = np.zeros((8, 8), complex)
        for row in range(8):
            for column in range(8):
                answer += image[row, column] * np.roll(kernel, (row, column), (0, 1))
        modulus = np.abs(answer)
        expected = [modulus[a : a + 4, b : b + 4].mean() for a in (0, 4) for b in (0, 4)]
        assert np.allclose(found[number], expected, atol=1e-5)


def test_gist_answers_to_the_direction_and_scale_of_waves() -> None:
    bank = filter_bank(64, 64, (8, 8, 4))
    assert not bank[:, 0, 0].any()
    _, across = np.mgrid[:64, :64]
    wave = np.sin(2 * np.pi * 0.3 * across)[None].astype(np.float32)
    strengths = run("gist?border=0&grid=1", wave).x_train[0]
    assert strengths.argmax() in (0, 4)  # the finest scale, along the rows or its opposite
    assert strengths.max() > 5 * strengths[2]


@given(rows=st.integers(4, 20), columns=st.integers(4, 20), grid=st.integers(1, 4))
@settings(max_examples=30)
def test_means_over_a_grid_cover_everything(rows: int, columns: int, grid: int) -> None:
    maps = np.ones((2, rows, columns))
    assert np.array_equal(region_means(maps, grid), np.ones((2, grid * grid)))


# --- chance -----------------------------------------------------------------------------------------------------------

AUGMENTED = ["raw", "crop?size=24", "flip", "brightness?most=63", "contrast?low=0.2&high=1.8", "standardise-each"]


def test_the_seed_draws_and_the_test_is_always_the_same() -> None:
    x = images(30, 32, 32, 3)
    first, again, other = (run(AUGMENTED, x, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.x_train, again.x_train)
    assert not np.array_equal(first.x_train, other.x_train)
    assert np.array_equal(first.x_test, other.x_test)
    assert first.x_train.shape == (30, 24, 24, 3)
    middle = x[:3, 4:28, 4:28].astype(float)
    deviation = middle.std((1, 2, 3), keepdims=True)
    assert np.allclose(first.x_test, (middle - middle.mean((1, 2, 3), keepdims=True)) / deviation, atol=1e-4)


def test_crops_are_windows_of_their_image_from_everywhere() -> None:
    pixels = np.arange(100).reshape(10, 10)
    found = run("crop?size=8", np.stack([pixels] * 300).astype(np.float32)).x_train[..., 0]
    corners = found[:, 0, 0].astype(int)
    assert set(corners) == {10 * row + column for row in range(3) for column in range(3)}
    for corner, window in zip(corners, found, strict=True):
        row, column = divmod(corner, 10)
        assert np.array_equal(window, pixels[row : row + 8, column : column + 8])


def test_flips_turn_about_half_and_nothing_else() -> None:
    x = images(400, 3, 5, 3)
    found = run("flip", x)
    turned = np.array([np.array_equal(made, raw[:, ::-1]) for raw, made in zip(x, found.x_train, strict=True)])
    assert all(np.array_equal(made, raw) for raw, made in zip(x[~turned], found.x_train[~turned], strict=True))
    assert 150 < turned.sum() < 250
    assert np.array_equal(found.x_test, x[:3])


def test_brightness_adds_one_number_to_each_image() -> None:
    x = images(200, 4, 4, 3)
    change = run("brightness", x).x_train - x
    assert np.ptp(change.reshape(200, -1), axis=1).max() < 1e-4
    assert change.min() >= -63
    assert change.max() <= 63
    assert np.ptp(change) > 100


def test_contrast_stretches_each_channel_about_its_mean() -> None:
    x = images(100, 6, 6, 3).astype(np.float32)
    found = run("contrast", x).x_train
    assert np.allclose(found.mean((1, 2)), x.mean((1, 2)), atol=1e-3)
    factors = found.std((1, 2)) / x.std((1, 2))
    assert np.allclose(factors, factors[:, :1], rtol=1e-4)
    assert factors.min() >= 0.19
    assert factors.max() <= 1.81
    with pytest.raises(StepError, match="below its smallest"):
        read_chain(["contrast?low=2&high=1"]).shape((4, 4, 3))
