"""Sets of rows."""

from __future__ import annotations

from dataclasses import replace

from timetrial.data.registry import Dataset, read_shelf, register
from timetrial.data.sources import Package

_SHUTTLE = register(
    Dataset(
        name="shuttle",
        summary="readings of a space shuttle's radiators, nine whole numbers each; four of five are of one class",
        classes=7,
        input_shape=(9,),
        licence="CC BY 4.0 (UCI); the package around it is GPL-2",
        citation="Statlog (Shuttle), UCI Machine Learning Repository, doi:10.24432/C5WS31",
        source="Statlog Shuttle: the first 43,500 rows to train on, the last 14,500 to test",
        read=read_shelf,
        shelf="shuttle",
        content="e666f01033873ffbdff506077bbddb839f90228bfe0131c263deebd57b9e8256",
        train=43_500,
        test=14_500,
        reader="shuttle",
        sources=(
            Package(
                "debian",
                "r-cran-mlbench",
                "2.1-3-1",
                1_049_188,
                "2f1127f7b5e7d08703b13b52ef1976a0c355a7660d6ac575e29b87b13921bc06",
                ("usr/lib/R/site-library/mlbench/data/Shuttle.rda",),
            ),
        ),
        how="download shuttle.trn and shuttle.tst, unpacked, or Shuttle.rda of R's package mlbench, into one folder",
    )
)
register(
    replace(
        _SHUTTLE,
        name="shuttle-8",
        summary="shuttle without its first column, the time of the reading: eight numbers each",
        input_shape=(8,),
        dropped=(0,),
        source=f"{_SHUTTLE.source}; its first column V1, the time, is left out",
    )
)
register(
    Dataset(
        name="hmdir",
        aliases=("rain-radar",),
        summary="an hour of radar readings over a rain gauge, of different lengths, 22 numbers each; the rain in mm",
        classes=None,
        input_shape=None,
        licence="by the rules of the competition that published it",
        citation="How Much Did It Rain? II, Kaggle, 2015",
        source="How Much Did It Rain? II: train.csv, a fifth of its hours kept for the test",
        read=read_shelf,
        shelf="hmdir",
        reader="radar",
        gaps=True,
        how="download train.csv of the competition How Much Did It Rain? II",
    )
)
