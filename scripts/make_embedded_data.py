"""Makes the embedded dataset from the four IDX files of Fashion-MNIST. The same files give the same bytes.

    python scripts/make_embedded_data.py FOLDER [--output FILE]

FOLDER holds {train,t10k}-images-idx3-ubyte.gz and {train,t10k}-labels-idx1-ubyte.gz, as the Debian package
dataset-fashion-mnist installs them in /usr/share/datasets/fashion-mnist. Prints the checksum for data/registry.py.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.uint8]

OUTPUT = Path(__file__).parents[1] / "src/timetrial/data/embedded/fashion_mnist_6000.npz"
TRAIN_PER_CLASS, TEST_PER_CLASS, CLASSES = 500, 100, 10

# As published, of the files when unpacked: the packed ones differ from copy to copy.
MD5 = {
    "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
    "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
    "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
}


def read_idx(folder: Path, name: str) -> Array:
    content = gzip.decompress((folder / f"{name}.gz").read_bytes())
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != MD5[name]:
        raise SystemExit(f"{name}.gz is not the published file: MD5 {found} instead of {MD5[name]}")
    rank = content[3]
    shape = struct.unpack(f">{rank}I", content[4 : 4 + 4 * rank])
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def first_of_each_class(labels: Array, count: int) -> NDArray[Any]:
    """Places of the first `count` of every class, in the order of the file."""
    return np.sort(np.concatenate([np.flatnonzero(labels == label)[:count] for label in range(CLASSES)]))


def sample(folder: Path, split: str, count: int) -> tuple[Array, Array]:
    images, labels = read_idx(folder, f"{split}-images-idx3-ubyte"), read_idx(folder, f"{split}-labels-idx1-ubyte")
    chosen = first_of_each_class(labels, count)
    return images[chosen], labels[chosen]


def pack(arrays: dict[str, Array]) -> bytes:
    """An `.npz` without the time of day in it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(info, member.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return packed.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the embedded sample of Fashion-MNIST.")
    parser.add_argument("folder", type=Path, help="holds the four IDX files, packed with gzip")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    x_train, y_train = sample(arguments.folder, "train", TRAIN_PER_CLASS)
    x_test, y_test = sample(arguments.folder, "t10k", TEST_PER_CLASS)
    content = pack({"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test})
    arguments.output.write_bytes(content)
    print(f"{arguments.output.name}: {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
