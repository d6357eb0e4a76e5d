"""The report in a real browser: every chart drawn, nothing hostile run, nothing asked of the network, no error."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.unit import made_records as made
from timetrial.records.record import Record
from timetrial.records.store import Store
from timetrial.report.html import page
from timetrial.report.summary import summarise

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--virtual-time-budget=8000", "--dump-dom",
)  # fmt: skip
DARK = "--blink-settings=preferredColorScheme=0"

# Runs before the page's own scripts, notes what goes wrong, and looks around once the charts are drawn.
PROBE = """
(function () {
  var wrong = [];
  function say(what) { wrong.push(String(what)); }
  window.addEventListener("error", function (e) { say(e.message || "a resource failed"); }, true);
  window.addEventListener("unhandledrejection", function (e) { say(e.reason); });
  document.addEventListener("securitypolicyviolation", function (e) { say("policy: " + e.violatedDirective + " " + e.blockedURI); });
  ["error", "warn"].forEach(function (kind) { console[kind] = function () { say(Array.from(arguments).join(" ")); }; });

  function column(table) { return Array.from(table.tBodies[0].rows).map(function (row) { return row.cells[0].querySelector(".name").textContent; }); }
  function sorted() {
    var table = document.querySelector("table.sortable");
    if (!table) return null;
    return Array.from(table.querySelectorAll("thead button")).map(function (button) {
      button.click(); var once = column(table);
      var state = button.parentNode.getAttribute("aria-sort");
      button.click();
      return { name: button.textContent, once: once, twice: column(table), states: [state, button.parentNode.getAttribute("aria-sort")] };
    });
  }
  function look() {
    var ink = document.querySelector(".chart svg text");
    document.documentElement.dataset.seen = JSON.stringify({
      wrong: wrong, hostile: window.hostile === undefined ? null : window.hostile, dialogs: document.querySelectorAll("img").length,
      charts: Array.from(document.querySelectorAll(".chart")).map(function (place) {
        var svg = place.querySelector("svg");
        return { id: place.id, width: svg ? svg.getBoundingClientRect().width : 0, label: place.getAttribute("aria-label") || "",
                 marks: place.querySelectorAll(".mark-rule line, .mark-symbol path, .mark-rect path, .mark-line path").length, text: place.textContent };
      }),
      fetched: performance.getEntriesByType("resource").map(function (e) { return e.name; }),
      page: [document.documentElement.scrollWidth, window.innerWidth],
      paper: getComputedStyle(document.body).backgroundColor, ink: ink ? getComputedStyle(ink).fill : null, tables: sorted()
    });
  }
  new MutationObserver(function (_, observer) {
    if (document.documentElement.dataset.charts) { observer.disconnect(); setTimeout(look, 100); }
  }).observe(document.documentElement, { attributes: true });
})();
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: the report is not looked at in a browser"),
]


def seen(
    records: list[Record], folder: Path, title: str = "Which is fastest?", width: int = 1280, *flags: str
) -> dict[str, Any]:
    content = page(made.STUDY, title, summarise(records), records, folder)
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    content = content.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    content = content.replace('<meta name="viewport"', f'<script>{PROBE}</script><meta name="viewport"', 1)
    path = folder / "page.html"
    path.write_text(content, encoding="utf-8")
    assert CHROMIUM
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={folder / 'browser'}",
        f"--window-size={width},2000",
        *flags,
        path.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found, f"the page did not come to its end: {done.stdout[:300]} {done.stderr[-300:]}"
    answer: dict[str, Any] = json.loads(unescape(found[1]))
    return answer


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("wide")
    Store(folder).keep_machine(made.MACHINE, made.INVENTORY)
    far = [
        *made.runs("jax", 1e-3, cell={"batch": 64, "model": made.HOSTILE}),
        *made.runs("torch", 0.1, cell={"batch": 64, "model": made.HOSTILE}),
    ]
    return seen([*made.study(), *far], folder, made.HOSTILE)


def test_nothing_goes_wrong(wide: dict[str, Any]) -> None:
    assert wide["wrong"] == []


def test_nothing_hostile_runs(wide: dict[str, Any]) -> None:
    assert wide["hostile"] is None and wide["dialogs"] == 0


def test_nothing_is_fetched(wide: dict[str, Any]) -> None:
    assert wide["fetched"] == []


def test_every_chart_is_drawn_over_the_width(wide: dict[str, Any]) -> None:
    of_groups = [f"chart-{group}-{i}" for group in (1, 2) for i in (1, 2, 3)]
    assert [chart["id"] for chart in wide["charts"]] == ["glance", *of_groups]
    for chart in wide["charts"]:
        assert chart["width"] > 1000 and chart["label"] and "could not be drawn" not in chart["text"], chart
    # Six cells and their words; ten dots and four rules; four phases of four engines; four lines. The legends have
    # marks of their own.
    least = (12, 14, 16, 4, 8, 8, 2)
    assert [chart["marks"] >= count for chart, count in zip(wide["charts"], least, strict=True)] == [True] * 7


def test_tables_sort_by_every_column_and_back(wide: dict[str, Any]) -> None:
    by_name = {column["name"]: column for column in wide["tables"]}
    odd = f"odd{made.HOSTILE}"
    assert by_name["engine"]["once"] == ["jax", "keras-torch", odd, "torch"]
    assert by_name["engine"]["twice"] == ["torch", odd, "keras-torch", "jax"]
    assert by_name["median step"]["once"] == ["jax", "torch", "keras-torch", odd]
    assert by_name["median step"]["twice"] == [odd, "keras-torch", "torch", "jax"]
    assert by_name["accuracy"]["once"][0] == by_name["accuracy"]["twice"][0] == "jax"  # the only one; dashes stay last
    assert all(column["states"] == ["ascending", "descending"] for column in wide["tables"])


def test_a_phone_scrolls_tables_and_not_the_page_in_the_dark(tmp_path: Path) -> None:
    found = seen(made.study(), tmp_path, "Which?", 390, DARK)
    assert found["wrong"] == []
    content, window = found["page"]
    assert content <= window
    assert all(200 < chart["width"] <= window for chart in found["charts"])
    assert found["paper"] == "rgb(20, 24, 29)" and found["ink"] == "rgb(230, 233, 236)"


def test_light_is_dark_on_white(wide: dict[str, Any]) -> None:
    assert (wide["paper"], wide["ink"]) == ("rgb(255, 255, 255)", "rgb(27, 31, 36)")


def test_a_study_of_failures_comes_to_its_end(tmp_path: Path) -> None:
    found = seen([made.missing(), made.wrong(), made.crash()], tmp_path)
    assert (found["wrong"], found["hostile"], found["charts"], found["tables"]) == ([], None, [], None)
