"""Published and derived figures of the studies' networks, as plain tables: what the zoo must reproduce to the unit."""

from __future__ import annotations

# Trainable parameters of the feed-forward networks, by input: hidden widths and count for 1 to 6 layers.
FEED_FORWARD: dict[str, list[tuple[tuple[int, ...], int]]] = {
    "cifar10": [
        ((960,), 932_170),
        ((640, 320), 823_370),
        ((549, 274, 137), 717_344),
        ((512, 256, 128, 64), 665_162),
        ((495, 248, 124, 62, 31), 639_602),
        ((487, 243, 122, 61, 31, 16), 626_466),
    ],
    "svhn": [
        ((154,), 25_420),
        ((102, 52), 21_696),
        ((88, 44, 22), 18_776),
        ((82, 41, 20, 11), 17_304),
        ((79, 40, 20, 10, 5), 16_590),
        ((78, 39, 19, 10, 5, 3), 16_244),
    ],
    "mnist": [
        ((784,), 623_290),
        ((522, 262), 549_426),
        ((448, 224, 112), 478_586),
        ((418, 209, 104, 53), 443_646),
        ((404, 202, 101, 51, 26), 426_277),
        ((398, 199, 99, 50, 25, 13), 418_384),
    ],
}

# The master CNNs whose counts were printed (AP-ReLU's is MP-ReLU's).
MASTERS = {"dnn-w20": 34_040, "all-cnn-c": 1_369_738, "wrn-16-8": 10_961_370}

LAYERS = (1, 2, 3, 4, 5)
FILTERS = (0.25, 0.5, 1, 2, 4)
KERNELS = (-3, -2, -1, 0, 1, 2)

BASIC: dict[str, dict[str, tuple[int, ...]]] = {
    "cnn-softmax": {
        "layers": (1_625_606, 1_753_702, 1_881_798, 2_009_894, 2_137_990),
        "filters": (136_934, 274_758, 569_606, 1_236_102, 2_876_294),
        "kernel": (1_165_926, 824_326, 550_886, 569_606, 368_486, 235_526),
    },
    "cnn-relu": {
        "layers": (10_071_562, 12_350_442, 14_629_322, 16_908_202, 19_187_082),
        "filters": (4_422_282, 4_766_474, 5_877_258, 9_788_426, 24_369_162),
        "kernel": (9_119_338, 9_346_058, 7_042_026, 7_450_122, 6_376_042, 6_965_514),
    },
    "basic-svhn": {
        "layers": (35_023_594, 47_876_634, 60_729_674, 73_582_714, 86_435_754),
        "filters": (9_479_362, 17_943_930, 35_023_594, 69_785_034, 141_724_682),
        "kernel": (20_072_186, 14_378_986, 9_750_842, 9_857_770, 6_311_162, 3_829_610),
    },
    "mp-relu": {
        "layers": (243_698, 551_090, 858_482, 1_165_874, 1_473_266),
        "filters": (25_154, 72_402, 243_698, 893_490, 3_421_874),
        "kernel": (1_604_978, 1_230_578, 936_818, 723_698, 591_218, 699_378),
    },
}
# The one printed count that includes the statistics of batch normalisation, which are not trained.
WITH_STATISTICS = "backends/basic-svhn?filters=4"

CELLS = {"imdb-lstm": (25, 50, 100, 200, 400, 800), "hmdir-lstm": (9, 18, 35, 70, 140, 280)}
RECURRENT: dict[str, dict[str, tuple[int, ...]]] = {
    "imdb-lstm": {
        "layers": (213_301, 293_701, 374_101, 454_501, 534_901),
        "cells": (165_826, 176_651, 213_301, 346_601, 853_201, 2_826_401),
    },
    "hmdir-lstm": {
        "layers": (8_436, 18_376, 28_316, 38_256, 48_196),
        "cells": (1_234, 3_115, 8_436, 26_671, 92_541, 341_881),
    },
}

# Training examples of the shares 33, 40, 57, 64, 83 and 100 % (100 % of CIFAR-10 was misprinted as 60,000).
FRACTIONS = (0.33, 0.4, 0.57, 0.64, 0.83)
EXAMPLES = {
    "cnn-softmax": (19_800, 24_000, 34_200, 38_400, 49_800),
    "cnn-relu": (16_500, 20_000, 28_500, 32_000, 41_500),
    "basic-svhn": (24_174, 29_302, 41_756, 46_884, 60_803),
    "mp-relu": (19_245, 23_328, 33_242, 37_324, 48_405),
}


def backends() -> list[tuple[str, int]]:
    """All printed counts of the back ends' comparison, by the zoo's names."""
    feed_forward = [
        (f"backends/fnn-{depth}-{input}", count)
        for input, rows in FEED_FORWARD.items()
        for depth, (_, count) in enumerate(rows, 1)
    ]
    masters = [(f"backends/{name}", count) for name, count in MASTERS.items()]
    values = {"layers": LAYERS, "filters": FILTERS, "kernel": KERNELS}
    basic = [
        (f"backends/{name}?{option}={value}", count)
        for name, sweeps in BASIC.items()
        for option, counts in sweeps.items()
        for value, count in zip(values[option], counts, strict=True)
    ]
    recurrent = [
        (f"backends/{name}?{option}={value}", count)
        for name, sweeps in RECURRENT.items()
        for option, counts in sweeps.items()
        for value, count in zip(LAYERS if option == "layers" else CELLS[name], counts, strict=True)
    ]
    return [*feed_forward, *masters, *basic, *recurrent]


PYRAMIDS = {
    "50": 2_601,
    "50-25": 3_851,
    "50-25-13": 4_177,
    "100": 5_201,
    "100-50": 10_201,
    "200": 10_401,
    "100-50-26": 11_503,
    "400": 20_801,
    "200-100": 30_401,
    "200-100-52": 35_605,
    "800": 41_601,
    "1600": 83_201,
    "400-200": 100_801,
    "400-200-104": 121_609,
    "3200": 166_401,
    "6400": 332_801,
    "800-400": 361_601,
    "800-400-208": 444_817,
    "12800": 665_601,
    "25600": 1_331_201,
    "1600-800": 1_363_201,
    "1600-800-416": 1_696_033,
    "3200-1600": 5_286_401,
    "3200-1600-832": 6_617_665,
    "6400-3200": 20_812_801,
    "6400-3200-1664": 26_137_729,
    "12800-6400": 82_585_601,
    "12800-6400-3328": 103_885_057,
    "25600-12800": 329_011_201,
    "25600-12800-6656": 414_208_513,
}

# Layer by layer: kind, output shape, parameters.
SOLAR_CNN: list[tuple[str, tuple[int, ...], int]] = [
    ("conv2d", (48, 48, 32), 320),
    ("conv2d", (46, 46, 64), 18_496),
    ("max_pool", (23, 23, 64), 0),
    ("dropout", (23, 23, 64), 0),
    ("flatten", (33_856,), 0),
    ("dense", (128,), 4_333_696),
    ("dropout", (128,), 0),
    ("dense", (1,), 129),
]

# Name, parameters, multiply-adds of the two convolutions, side of the maps after conv1, pool1, conv2, pool2.
PROFILING: list[tuple[str, int, int, tuple[int, ...]]] = [
    ("profiling/cnn", 1_068_298, 17_510_400, (24, 12, 12, 6)),
    ("profiling/cnn-stride-2", 281_866, 1_612_800, (12, 6, 3, 2)),
    ("profiling/cnn-stride-3", 208_138, 716_800, (8, 4, 2, 1)),
    ("profiling/cnn-stride-5", 208_138, 222_400, (5, 3, 1, 1)),
    ("profiling/cnn-filters-32", 546_666, 5_068_800, (24, 12, 12, 6)),
    ("profiling/cnn-large-pool", 1_068_298, 15_155_200, (24, 11, 11, 6)),
    ("profiling/cnn-stride-2-filters-32", 153_450, 576_000, (12, 6, 3, 2)),
    ("profiling/cnn-stride-3-filters-32", 116_586, 256_000, (8, 4, 2, 1)),
    ("profiling/cnn-stride-5-filters-32", 116_586, 85_600, (5, 3, 1, 1)),
]
# Node with parameters: parameters, multiply-adds.
PROFILED_LAYERS = {
    "conv2d_1": (4_864, 2_764_800),
    "conv2d_2": (102_464, 14_745_600),
    "dense_1": (885_120, 884_736),
    "dense_2": (73_920, 73_728),
    "dense_3": (1_930, 1_920),
}
# Network, node: size, window, stride, output, (padding before, after).
SAME_PADS: list[tuple[str, str, int, int, int, int, tuple[int, int]]] = [
    ("profiling/cnn", "conv2d_1", 24, 5, 1, 24, (2, 2)),
    ("profiling/cnn", "max_pool_1", 24, 3, 2, 12, (0, 1)),
    ("profiling/cnn", "max_pool_2", 12, 3, 2, 6, (0, 1)),
    ("profiling/cnn-stride-2", "conv2d_1", 24, 5, 2, 12, (1, 2)),
    ("profiling/cnn-stride-2", "conv2d_2", 6, 5, 2, 3, (1, 2)),
    ("profiling/cnn-stride-3", "conv2d_1", 24, 5, 3, 8, (1, 1)),
    ("profiling/cnn-stride-3", "conv2d_2", 4, 5, 3, 2, (2, 2)),
    ("profiling/cnn-stride-5", "conv2d_1", 24, 5, 5, 5, (0, 1)),
    ("profiling/cnn-stride-5", "conv2d_2", 3, 5, 5, 1, (1, 1)),
]

# (layers, neurons): parameters, multiply-adds.
LIBRARIES_MLP: dict[tuple[int, int], tuple[int, int]] = {
    (2, 25): (1_057, 1_000),
    (2, 50): (3_357, 3_250),
    (2, 100): (11_707, 11_500),
    (2, 200): (43_407, 43_000),
    (2, 400): (166_807, 166_000),
    (2, 1600): (2_587_207, 2_584_000),
    (4, 25): (2_357, 2_250),
    (4, 50): (8_457, 8_250),
    (4, 100): (31_907, 31_500),
    (4, 200): (123_807, 123_000),
    (4, 400): (487_607, 486_000),
    (4, 1600): (7_710_407, 7_704_000),
    (8, 25): (4_957, 4_750),
    (8, 50): (18_657, 18_250),
    (8, 100): (72_307, 71_500),
    (8, 200): (284_607, 283_000),
    (8, 400): (1_129_207, 1_126_000),
    (8, 1600): (17_956_807, 17_944_000),
    (16, 25): (10_157, 9_750),
    (16, 50): (39_057, 38_250),
    (16, 100): (153_107, 151_500),
    (16, 200): (606_207, 603_000),
    (16, 400): (2_412_407, 2_406_000),
    (16, 1600): (38_449_607, 38_424_000),
}
LIBRARIES_CNN: dict[tuple[int, int], tuple[int, int]] = {
    (1, 2): (152_710, 504_840),
    (1, 4): (294_286, 998_760),
    (1, 8): (577_438, 1_986_600),
    (1, 16): (1_143_742, 3_962_280),
    (1, 32): (2_276_350, 7_913_640),
    (1, 64): (4_541_566, 15_816_360),
    (2, 2): (30_496, 471_720),
    (2, 4): (51_658, 1_112_520),
    (2, 8): (99_382, 2_934_120),
    (2, 16): (216_430, 8_737_320),
    (2, 32): (536_926, 28_983_720),
    (2, 64): (1_523_518, 104_036_520),
}

OTHERS = {
    "parallel/resnet-34": 21_283_017,
    "parallel/mlp": 784 * 192 + 192 + 192 * 10 + 10,
    "modern/resnet-18": 11_689_512,
    "modern/resnet-50": 25_557_032,
}
