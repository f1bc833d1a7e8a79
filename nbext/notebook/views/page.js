// @ts-check
// A page from disk: its table is inside, packed, and what is asked of it is answered here.
import { h, press } from "./dom.js";
import { ArraySource } from "./source.js";
import { Table } from "./table.js";

/** A text as a cell of CSV, in which no spreadsheet finds a formula. @param {string} text @param {boolean} isNumber */
function csvCell(text, isNumber) {
  const safe = !isNumber && /^[=+\-@\t\r\n\0＝＋－＠]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The rows that are shown, in their order, with exact values. @param {ArraySource} source */
function csv(source) {
  const kinds = source.columns.map(({ kind }) => kind === "number");
  const parts = [`${source.columns.map(({ name }) => csvCell(name, false)).join(",")}\r\n`];
  for (const row of source.places) parts.push(`${kinds.map((isNumber, at) => csvCell(source.text(row, at) ?? "", isNumber)).join(",")}\r\n`);
  return parts;
}

/** @param {string} packed @returns {Promise<any>} */
async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/** @param {HTMLElement} place @param {string} packed @param {string} name  of the file that CSV is saved as */
export async function open(place, packed, name) {
  const { columns, total } = await unpacked(packed);
  const source = new ArraySource(columns, total);
  const save = press("CSV", () => {
    const url = URL.createObjectURL(new Blob(csv(source), { type: "text/csv" }));
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }, { title: "Save the rows that are shown, in their order" });
  place.replaceChildren(new Table(source, [save]).el);
}

const data = typeof document === "undefined" ? null : document.getElementById("nbext-data");
// Once the words above it are painted.
if (data) setTimeout(() => open(/** @type {HTMLElement} */ (document.getElementById("nbext-table")), data.textContent ?? "", data.dataset.name ?? "table.csv"));
