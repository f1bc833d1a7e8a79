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
  const { columns, values, places } = source;
  const lines = [columns.map(({ name }) => csvCell(name, false))];
  for (const row of places)
    lines.push(columns.map(({ kind }, at) => csvCell(values[at][row] ?? "", kind === "number")));
  return lines.map((cells) => `${cells.join(",")}\r\n`);
}

// Python's letters of base 85, but for the one that begins a tag.
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

/** Bytes of letters in base 85: five are four bytes, and what the last five lack is the last letter. @param {string} letters */
function bytesOf(letters) {
  const digits = new Uint8Array(128);
  for (let at = 0; at < LETTERS.length; at++) digits[LETTERS.charCodeAt(at)] = at;
  const view = new DataView(new ArrayBuffer(4 * Math.ceil(letters.length / 5)));
  for (let at = 0; 5 * at < letters.length; at++) {
    let number = 0;
    for (const letter of letters.slice(5 * at, 5 * at + 5).padEnd(5, "~"))
      number = 85 * number + digits[letter.charCodeAt(0)];
    view.setUint32(4 * at, number);
  }
  return new Uint8Array(view.buffer, 0, Math.floor((letters.length * 4) / 5));
}

/** @param {string} packed @returns {Promise<any>} */
function unpacked(packed) {
  return new Response(
    new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("deflate")),
  ).json();
}

/** @param {HTMLElement} place @param {string} packed @param {string} name  of the file that CSV is saved as */
export async function open(place, packed, name) {
  const { columns, total } = await unpacked(packed);
  const source = new ArraySource(columns, total);
  const save = press(
    "CSV",
    () => {
      const url = URL.createObjectURL(new Blob(csv(source), { type: "text/csv" }));
      h("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    },
    { title: "Save the rows that are shown, in their order" },
  );
  place.replaceChildren(new Table(source, [save]).el);
}

const [place, data] = ["nbext-table", "nbext-data"].map((id) => document.getElementById(id));
// Once the words above it are painted.
if (place && data) setTimeout(() => open(place, data.textContent ?? "", data.dataset.name ?? "table.csv"));
