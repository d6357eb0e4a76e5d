"use strict";
(function () {
  /* Tables: a button in each heading sorts by its column; what was not measured stays at the end. */
  function compare(kind, down) {
    return function (a, b) {
      if (a.key === "" || b.key === "") return (a.key === "") - (b.key === "") || a.place - b.place;
      var order = kind === "number" ? Number(a.key) - Number(b.key) : a.key.localeCompare(b.key);
      return (down ? -order : order) || a.place - b.place;
    };
  }

  function sort(table, head, column) {
    var down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    var body = table.tBodies[0];
    Array.from(body.rows)
      .map(function (row, place) { return { row: row, place: place, key: row.cells[column].dataset.key || "" }; })
      .sort(compare(head.dataset.kind, down))
      .forEach(function (item) { body.appendChild(item.row); });
  }

  document.querySelectorAll("table.sortable").forEach(function (table) {
    table.querySelectorAll("thead th").forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", function () { sort(table, head, column); });
      head.replaceChildren(button);
    });
  });

  /* Long tables: a box above each leaves the rows that hold all words written into it. */
  function narrow(table, words) {
    var rows = Array.from(table.tBodies[0].rows), wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach(function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !wanted.every(function (word) { return text.includes(word); });
    });
    return wanted.length ? rows.filter(function (row) { return !row.hidden; }).length + " of " + rows.length + " rows" : "";
  }

  document.querySelectorAll("table[data-filter]").forEach(function (table) {
    var box = document.createElement("label"), input = document.createElement("input"), said = document.createElement("span");
    box.className = "filter";
    input.type = "search";
    said.setAttribute("role", "status");
    input.addEventListener("input", function () { said.textContent = narrow(table, input.value); });
    box.append("only rows with", input, "(" + table.dataset.filter + ")", said);
    table.parentNode.before(box);
  });

  /* Charts: one after the other, so that the page can be read meanwhile. */
  function draw(source, config) {
    var place = document.getElementById(source.dataset.chart);
    var options = { mode: "vega-lite", renderer: "svg", actions: false, config: config };
    return window.vegaEmbed(place, JSON.parse(source.textContent), options).catch(function (error) {
      place.textContent = "This chart could not be drawn (" + error.message + "); its figures are in the table.";
      console.error(error);
    });
  }

  async function drawAll() {
    var config = document.getElementById("chart-config");
    if (config) {
      config = JSON.parse(config.textContent);
      for (const source of document.querySelectorAll("script[data-chart]")) await draw(source, config);
    }
    document.documentElement.dataset.charts = "drawn";
  }

  drawAll();
})();
