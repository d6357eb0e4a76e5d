"""`timetrial models`: the zoo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.shared import AsJson, console, explained, print_json

if TYPE_CHECKING:
    from timetrial.spec.network import Network
    from timetrial.zoo import Model

app = typer.Typer(help="The networks of the studies and of today, by name.", no_args_is_help=True)


@app.command("list")
def list_models(
    words: Annotated[list[str] | None, typer.Argument(help="Only names that hold all these words.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the models: families with their options, then the names when words narrow them down."""
    with explained():
        from timetrial import zoo

        if words:
            names = [name for name in zoo.names() if all(word in name for word in words)]
            print_json(names) if as_json else print("\n".join(names) or "no model's name holds these words")
            return
        entries = zoo.entries()
        if as_json:
            print_json(
                [{"name": e.name, "study": e.study, "summary": e.summary, "dataset": e.dataset} for e in entries]
            )
            return
        for entry in entries:
            print(f"{entry.name:44} {entry.summary}")


@app.command("show")
def show_model(
    name: Annotated[str, typer.Argument(help="For example backends/cnn-softmax or 'backends/cnn-softmax?filters=2'.")],
    as_json: AsJson = False,
) -> None:
    """Show a model layer by layer: shapes, parameters, multiply-adds, and its recipe."""
    with explained():
        from timetrial import zoo

        model = zoo.find(name)
        if as_json:
            network = model.network
            print_json(
                {
                    "name": name,
                    "parameters": network.parameter_count(),
                    "trainable": network.parameter_count(trainable_only=True),
                    "multiply_adds": network.multiply_adds,
                    "network": network,
                    "recipe": model.recipe,
                    "dataset": model.dataset,
                    "preprocessing": model.preprocessing,
                }
            )
        else:
            _show(name, model)


def _show(name: str, model: Model) -> None:
    from timetrial.spec.shapes import describe

    network: Network = model.network
    out = console()
    out.print(_table(network))
    trainable, every = network.parameter_count(trainable_only=True), network.parameter_count()
    fixed = "" if trainable == every else f" ({every - trainable:,} more are not trained)"
    out.print(f"{name}: input {describe(network.input.shape)}, {trainable:,} parameters{fixed}, ", end="")
    out.print(f"{network.multiply_adds:,} multiply-adds a sample forward")
    recipe = model.recipe.model_dump(exclude_defaults=True)
    optimiser = model.recipe.optimiser
    chosen = {"batch": model.recipe.batch, "epochs": model.recipe.epochs, "loss": model.recipe.loss, **recipe}
    chosen["optimiser"] = optimiser.model_dump(exclude_defaults=True) | {"kind": optimiser.kind, "rate": optimiser.rate}
    out.print("recipe: " + ", ".join(f"{key} {value}" for key, value in chosen.items()))
    out.print(f"data: {model.dataset}, preprocessing: {', '.join(model.preprocessing) or 'none published'}")


def _table(network: Network) -> object:
    from rich.table import Table

    from timetrial.spec.shapes import describe

    table = Table(show_edge=False, pad_edge=False)
    for column, justify in (("layer", "left"), ("operation", "left"), ("output", "right"), ("parameters", "right"),
                            ("multiply-adds", "right")):  # fmt: skip
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for node in network.nodes:
        operation = str(node.attrs.get("function", node.op))
        count = sum(parameter.size for parameter in node.parameters)
        table.add_row(node.name, operation, describe(node.shape), f"{count:,}", f"{node.multiply_adds:,}")
    return table
