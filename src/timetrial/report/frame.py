"""What all pages are made of: one HTML file that needs no network.

All text goes through the template's escaping, all data into scripts as JSON without any character that ends one, and
the page's policy lets no script run but those written here.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from timetrial.report import charts
from timetrial.report.style import chart_config

_FONT = "system-ui, sans-serif"


@dataclass(frozen=True)
class Figure:
    id: str
    title: str
    spec: Mapping[str, Any]
    caption: str
    words: tuple[str, ...] = ()


def rendered(template: str, drawn: bool, **content: Any) -> str:
    """`drawn`: whether the page has charts, and so needs the library that draws them."""
    return environment().get_template(template).render(
        config=chart_config("currentColor", _FONT),
        style=_own("page.css"),
        program=_own("page.js"),
        library=_library() if drawn else "",
        **content,
    )  # fmt: skip


def environment() -> Environment:
    found = Environment(
        loader=PackageLoader("timetrial.report", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["hash"] = _hash
    return found


def _hash(script: str) -> str:
    """As a content security policy names a script: `sha256-…`."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _own(name: str) -> Markup:
    """The package's own style or script: trusted, so not escaped."""
    return Markup(files("timetrial.report").joinpath("templates", name).read_text(encoding="utf-8"))


def _library() -> Markup:
    """Vega-Embed with all it needs, once for all charts; in a function, so that its names stay its own."""
    import vl_convert

    # Its stub asks for a snippet that its code does not need.
    bundle = vl_convert.javascript_bundle(vl_version=charts.vega_lite())  # type: ignore[call-arg]
    return Markup("(function(){" + bundle + "})();")
