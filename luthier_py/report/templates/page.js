"use strict";

// A click on a column sorts by it: largest first, then smallest first, then as the page had it. Empty cells are last.
// Tables that have a column of this name are coloured by it, the one that was sorted and those beside it.
function value(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = Number(text) || parseFloat(text);
  return text === "" ? null : Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

function sort(head, column) {
  const table = head.closest("table"), body = table.tBodies[0];
  const order = {none: "descending", descending: "ascending", ascending: "none"}[head.ariaSort || "none"];
  for (const other of head.parentNode.cells) other.ariaSort = "none";
  head.ariaSort = order;
  table.classList.toggle("sorted", order !== "none");
  const sign = order === "descending" ? -1 : 1;
  const keyed = table.rowsAsTheyWere.map((row) => [row, row.className === "heading" ? null : value(row, column)]);
  if (order !== "none") {
    keyed.sort(([, a], [, b]) => (a === null) - (b === null) || (a === null ? 0 : sign * compare(a, b)));
  }
  body.append(...keyed.map(([row]) => row));
  colour(head.textContent.trim(), order !== "none");
}

function colour(name, byColumn) {
  for (const table of document.querySelectorAll("table")) {
    const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.trim() === name);
    if (column < 0 || column === 0) continue;
    const rows = table.rowsAsTheyWere.filter((row) => row.className !== "heading");
    const numbers = rows.map((row) => value(row, column));
    const most = Math.max(0, ...numbers.filter((number) => typeof number === "number"));
    rows.forEach((row, at) => {
      const heat = byColumn && most > 0 && typeof numbers[at] === "number" ? numbers[at] / most : 0;
      row.style.background = byColumn ? (heat > 0 ? `hsl(16 90% 50% / ${(0.6 * heat).toFixed(2)})` : "") : row.heat;
    });
  }
}

// Words in the field over a table leave only the rows that have all of them.
function filter(table, words) {
  table.classList.toggle("filtered", words.length > 0);
  for (const row of table.rowsAsTheyWere) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}

for (const table of document.querySelectorAll("table")) {
  table.rowsAsTheyWere = [...table.tBodies[0].rows];
  for (const row of table.rowsAsTheyWere) row.heat = row.style.background;
  const field = table.parentNode.querySelector("input[type=search]");
  if (field) field.addEventListener("input", () => filter(table, field.value.toLowerCase().split(/\s+/).filter(Boolean)));
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => sort(head, column));
  });
}

// A row that stands for a source line shows that line in the other pane, and all its instructions.
function choose(row) {
  for (const old of document.querySelectorAll("tr.chosen")) old.classList.remove("chosen");
  const same = [...document.querySelectorAll("tr[data-line]")].filter((r) => r.dataset.line === row.dataset.line);
  for (const one of same) one.classList.add("chosen");
  const shown = new Set([row.closest(".pane")]);
  for (const one of same) {
    const pane = one.closest(".pane");
    if (!pane || shown.has(pane)) continue;
    shown.add(pane);
    reveal(one);
  }
}

// Only the pane scrolls, and never sideways.
function reveal(row) {
  const pane = row.closest(".pane");
  if (!pane) return row.scrollIntoView({block: "center"});
  const middle = pane.getBoundingClientRect().top + pane.clientHeight / 2;
  pane.scrollTop += row.getBoundingClientRect().top - middle;
  pane.scrollLeft = 0;
}

for (const row of document.querySelectorAll("tr[data-line]")) {
  row.addEventListener("click", (event) => event.target.closest("a") || choose(row));
}

function follow() {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!row) return;
  reveal(row);
  if (row.dataset.line) choose(row);
}

// A pane begins where most happens.
function start() {
  for (const pane of document.querySelectorAll(".pane")) {
    const table = pane.querySelector("table[data-start]");
    const row = table && document.getElementById(table.dataset.start);
    if (!row || pane.scrollHeight <= pane.clientHeight) continue;
    pane.scrollTop += row.getBoundingClientRect().top - pane.getBoundingClientRect().top - table.tHead.offsetHeight;
  }
}

addEventListener("hashchange", follow);
start();
follow();
