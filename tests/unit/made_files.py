"""Small files in the exact formats of the published datasets, written byte by byte, apart from the readers."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

RNG = np.random.default_rng(3)


def idx(array: np.ndarray) -> bytes:
    kind = {"|u1": 0x08, ">i2": 0x0B, ">f4": 0x0D}[array.dtype.str]
    return bytes((0, 0, kind, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def mnist(folder: Path, packed: bool = False, classes: int = 10) -> dict[str, np.ndarray]:
    made = {}
    for part, count in (("train", 3 * classes), ("t10k", classes)):
        made[f"{part}-images-idx3-ubyte"] = RNG.integers(0, 256, (count, 28, 28), np.uint8)
        made[f"{part}-labels-idx1-ubyte"] = (np.arange(count) % classes).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in made.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
        else:
            (folder / name).write_bytes(idx(array))
    return made


def cifar_rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    return RNG.integers(0, 256, (count, 32, 32, 3), np.uint8), np.arange(count) % 10


def cifar_binary(folder: Path, images: np.ndarray, labels: np.ndarray, test: tuple[np.ndarray, np.ndarray]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = [(f"data_batch_{n + 1}", images[n::5], labels[n::5]) for n in range(5)] + [("test_batch", *test)]
    for name, x, y in parts:
        records = [bytes([label]) + b"".join(image[..., plane].tobytes() for plane in range(3))
                   for image, label in zip(x, y, strict=True)]  # fmt: skip
        (folder / f"{name}.bin").write_bytes(b"".join(records))


def cifar_sprites(folder: Path, images: np.ndarray, labels: np.ndarray, test: tuple[np.ndarray, np.ndarray]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = [(f"data_batch_{n + 1}", images[n::5]) for n in range(5)] + [("test_batch", test[0])]
    for name, x in parts:
        Image.fromarray(x.reshape(len(x), 1024, 3)).save(folder / f"{name}.png")
    in_order = [int(label) for n in range(5) for label in labels[n::5]]
    (folder / "train_lables.json").write_text(json.dumps(in_order))
    (folder / "test_lables.json").write_text(json.dumps([int(label) for label in test[1]]))


# --- R ----------------------------------------------------------------------------------------------------------------


class RData:
    """Writes what R's `save()` writes for one data frame of reals and a factor, with names used again as references."""

    def __init__(self) -> None:
        self.out = io.BytesIO()
        self.symbols: list[str] = []

    def whole(self, *values: int) -> None:
        self.out.write(struct.pack(f">{len(values)}i", *values))

    def chars(self, text: str) -> None:
        self.whole(9, len(text))
        self.out.write(text.encode())

    def symbol(self, name: str) -> None:
        if name in self.symbols:
            self.whole((self.symbols.index(name) + 1) << 8 | 255)
        else:
            self.symbols.append(name)
            self.whole(1)
            self.chars(name)

    def texts(self, *words: str) -> None:
        self.whole(16, len(words))
        for word in words:
            self.chars(word)

    def attribute(self, name: str, *words: str) -> None:
        self.whole(0x402)
        self.symbol(name)
        self.texts(*words)

    def frame(self, name: str, columns: dict[str, np.ndarray], factor: np.ndarray, levels: list[str]) -> bytes:
        self.out.write(b"RDX2\nX\n")
        self.whole(2, 0x00020A01, 0x00020300, 0x402)
        self.symbol(name)
        self.whole(0x313, len(columns) + 1)
        for values in columns.values():
            self.whole(14, len(values))
            self.out.write(values.astype(">f8").tobytes())
        self.whole(0x30D, len(factor))
        self.out.write(factor.astype(">i4").tobytes())
        self.attribute("levels", *levels)
        self.attribute("class", "factor")
        self.whole(254)
        self.attribute("names", *columns, "Class")
        self.attribute("row.names", *map(str, range(1, len(factor) + 1)))
        self.attribute("class", "data.frame")
        self.whole(254, 254)
        return self.out.getvalue()


def shuttle_table(rows: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    return {f"V{n}": RNG.integers(-99, 99, rows).astype(float) for n in range(1, 10)}, np.arange(rows) % 7 + 1


def shuttle_rda(path: Path, columns: dict[str, np.ndarray], classes: np.ndarray) -> bytes:
    levels = ["Rad.Flow", "Fpv.Close", "Fpv.Open", "High", "Bypass", "Bpv.Close", "Bpv.Open"]
    plain = RData().frame("Shuttle", columns, classes, levels)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(plain))
    return plain


# --- others -----------------------------------------------------------------------------------------------------------


def norb_matrix(array: np.ndarray) -> bytes:
    magic = {"|u1": 0x1E3D4C55, "<i4": 0x1E3D4C54}[array.dtype.str]
    sizes = list(array.shape) + [1] * (3 - array.ndim)
    return struct.pack(f"<2i{len(sizes)}i", magic, array.ndim, *sizes) + array.tobytes()


def norb(folder: Path, classes: int = 5, parts: int = 1, packed: bool = False) -> dict[str, np.ndarray]:
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for part, count in (("training", 2 * classes), ("testing", classes)):
        for number in range(parts):
            middle = f"-{number + 1:02}" if parts > 1 else ""
            dat = RNG.integers(0, 256, (count, 2, 96, 96), np.uint8)
            cat = (np.arange(count) % classes).astype("<i4")
            for what, array in (("dat", dat), ("cat", cat)):
                name = f"smallnorb-5x46789x9x18x6x2x96x96-{part}{middle}-{what}.mat"
                made[name] = array
                if packed:
                    (folder / f"{name}.gz").write_bytes(gzip.compress(norb_matrix(array)))
                else:
                    (folder / name).write_bytes(norb_matrix(array))
    return made


def svhn(folder: Path, compressed: bool = True) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    from scipy.io import savemat

    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for part, count in (("train", 20), ("test", 10)):
        x = RNG.integers(0, 256, (32, 32, 3, count), np.uint8)
        y = (np.arange(count) % 10 + 1).astype(np.uint8).reshape(-1, 1)
        savemat(folder / f"{part}_32x32.mat", {"X": x, "y": y}, do_compression=compressed)
        made[part] = (x, y)
    return made


def fish(folder: Path, kinds: int = 9, each: int = 7, size: tuple[int, int] = (44, 59)) -> None:
    """Photographs beside their masks, as published; the masks are RGB though they have two shades."""
    for kind in range(kinds):
        for what in ("", " GT"):
            place = folder / f"Fish {kind}" / f"Fish {kind}{what}"
            place.mkdir(parents=True)
            for number in range(each):
                shade = 255 if what else 77
                Image.new("RGB", size[::-1], (shade,) * 3).save(place / f"{number:05}.png")


def pictures(
    folder: Path, names: tuple[str, ...], each: int, size: tuple[int, int] = (6, 8), mode: str = "RGB"
) -> None:
    for shade, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for number in range(each):
            colour = (10 * shade, number, 200) if mode == "RGB" else 10 * shade + number
            Image.new(mode, size[::-1], colour).save(folder / name / f"{number}.png")


RADAR = (
    "Id,minutes_past,radardist_km,Ref,Ref_5x5_10th,Ref_5x5_50th,Ref_5x5_90th,RefComposite,RefComposite_5x5_10th,"
    "RefComposite_5x5_50th,RefComposite_5x5_90th,RhoHV,RhoHV_5x5_10th,RhoHV_5x5_50th,RhoHV_5x5_90th,Zdr,Zdr_5x5_10th,"
    "Zdr_5x5_50th,Zdr_5x5_90th,Kdp,Kdp_5x5_10th,Kdp_5x5_50th,Kdp_5x5_90th,Expected"
)


def radar(path: Path, lengths: tuple[int, ...] = (3, 1, 4, 2, 5, 2, 2, 3, 1, 6)) -> None:
    lines = [RADAR]
    for hour, length in enumerate(lengths, 1):
        for minute in range(length):
            readings = ["" if (hour + place) % 4 == 0 else f"{hour + place / 10}" for place in range(20)]
            lines.append(",".join([str(hour), str(minute), "10.0", *readings, f"{hour * 0.254:.3f}"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def reviews(path: Path, quarter: int) -> list[dict[str, object]]:
    """Sorted by label, and within a label the test's before those for training, as in the package."""
    items: list[dict[str, object]] = [
        {"t": f"{part} {label} {number} è", "s": label}
        for label in (0, 1) for part in ("test", "train") for number in range(quarter)
    ]  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(items))
    return items


def tar(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def deb(path: Path, files: dict[str, bytes]) -> Path:
    inner = tar(path.with_suffix(".tar.xz"), {f"./{name}": content for name, content in files.items()}, "w:xz")
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": inner.read_bytes()}
    inner.unlink()
    out = b"!<arch>\n"
    for name, content in members.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    path.write_bytes(out)
    return path
