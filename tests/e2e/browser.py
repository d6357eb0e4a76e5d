"""A page in a real browser: what is drawn, what goes wrong, what is asked of the network."""

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
  function narrowed() {
    return Array.from(document.querySelectorAll("table[data-filter]")).map(function (table) {
      var box = table.parentNode.previousElementSibling, input = box.querySelector("input");
      function left(words) {
        input.value = words;
        input.dispatchEvent(new Event("input"));
        return Array.from(table.tBodies[0].rows).filter(function (row) { return row.offsetParent !== null; }).length;
      }
      return { all: left(""), some: left("FORWARD conv2"), said: box.querySelector("[role=status]").textContent, none: left("no such row"), again: left("") };
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
      filters: narrowed(), steps: Array.from(document.querySelectorAll("svg.timeline")).map(function (step) {
        return { bars: step.querySelectorAll("svg > rect").length, width: step.getBoundingClientRect().width, first: step.querySelector("svg > title").textContent };
      }),
      paper: getComputedStyle(document.body).backgroundColor, ink: ink ? getComputedStyle(ink).fill : null, tables: sorted()
    });
  }
  new MutationObserver(function (_, observer) {
    if (document.documentElement.dataset.charts) { observer.disconnect(); setTimeout(look, 100); }
  }).observe(document.documentElement, { attributes: true });
})();
"""

NEEDED = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: pages are not looked at in a browser"),
]


def look_at(content: str, folder: Path, width: int = 1280, *flags: str) -> dict[str, Any]:
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
