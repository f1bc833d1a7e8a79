// @ts-check
// A table that is here whole: sorted and filtered as Python does it for one that is in the kernel, exactly.
import { instant, plainNumber, scaled, sixDigits, unitsText } from "./numbers.js";

/** @typedef {{ name: string, kind: "number" | "text" | "address" | "time" | "flag", unit?: string, share?: boolean, id?: boolean, decimals?: number | null }} Column  exact numbers have decimals */
/** @typedef {{ min?: string, max?: string, text?: string }} Bounds  a max that begins with < is left out; a text after = is whole */
/** @typedef {{ order: [number, "ascending" | "descending"][], filters: Record<string, Bounds>, search: string }} Asked */
/** @typedef {bigint | number | string | null} Key  an exact number in the smallest unit, a float, seconds since 1970, or a text */
/** @typedef {{ count: number, errors: Record<string, string> }} Found */
/** @typedef {{ bars: import("./histogram.js").Bar[], missing: number, distinct?: number, min?: string, max?: string, sum?: string }} Summary  of the rows that match, but for its bars */
/** @typedef {{ columns: Column[], total: number, ask(asked: Asked): Promise<Found>, rows(from: number, to: number): Promise<(string | null)[][]>, summary(at: number): Promise<Summary> }} Source */

// Of a value that is missing, and between values. No text has them: what is hidden in one is written as an escape.
const MISSING = "\0";
const BETWEEN = "\x7f";
const SEARCH = -1; // its place among the filters of columns
const MOST_NAMES = 8;
const DAY = 86_400;

/** @implements {Source} */
export class ArraySource {
  /** @param {(Column & { texts: string, bins: import("./histogram.js").Bar[] })[]} columns  the exact texts and bins of all rows; of addresses alone their digits, with nothing between */
  constructor(columns, /** @type {number} */ total) {
    this.columns = columns;
    this.bins = columns.map(({ bins }) => bins);
    this.total = total;
    this.values = columns.map(({ kind, texts }) => {
      if (kind === "address" && !texts.includes("x"))
        return Array.from(texts.match(/.{40}/g) ?? [], (digits) => `0x${digits}`);
      return total ? texts.split(BETWEEN).map((text) => (text === MISSING ? null : text)) : [];
    });
    /** @type {Map<number, Key[]>} */
    this.known = new Map();
    /** @type {Map<number, (row: number) => boolean>} */
    this.tests = new Map();
    this.places = this.matching();
  }

  /** What a column's values are compared and added up by, null where one is missing. @param {number} at */
  keys(at) {
    let made = this.known.get(at);
    if (!made) {
      const { kind, decimals } = this.columns[at];
      const read = (/** @type {string} */ value) => {
        if (kind === "time") return instant(value);
        if (kind !== "number") return value;
        if (typeof decimals === "number") return scaled(value, decimals).floor;
        return Number(value.replace("inf", "Infinity")); // as Python writes it
      };
      made = this.values[at].map((value) => (value === null ? null : read(value)));
      this.known.set(at, made);
    }
    return made;
  }

  /** @param {Asked} asked @returns {Promise<Found>} */
  async ask({ order, filters, search }) {
    /** @type {Record<string, string>} */
    const errors = {};
    this.tests.clear();
    for (const [at, bounds] of Object.entries(filters)) {
      const made = this.test(Number(at), bounds);
      if (typeof made === "string") errors[at] = made;
      else this.tests.set(Number(at), made);
    }
    const texts = this.values.filter((_, at) => ["text", "address"].includes(this.columns[at].kind));
    const holds = holding(search);
    if (search) this.tests.set(SEARCH, (row) => texts.some((values) => holds(values[row])));
    this.places = this.matching();
    const compare = order.map(([at, way]) => this.comparison(at, way === "ascending" ? 1 : -1));
    if (compare.length)
      this.places.sort((a, b) => compare.reduce((apart, one) => apart || one(a, b), 0) || a - b);
    return { count: this.places.length, errors };
  }

  /** The rows that all filters take, or all but one. @param {number} [but] */
  matching(but) {
    const tests = [...this.tests].flatMap(([at, test]) => (at === but ? [] : [test]));
    const kept = new Uint32Array(this.total);
    let number = 0;
    for (let row = 0; row < this.total; row++) if (tests.every((test) => test(row))) kept[number++] = row;
    return kept.subarray(0, number);
  }

  /** @param {number} at @param {Bounds} bounds @returns {string | ((row: number) => boolean)} what is wrong, or whether a row fits */
  test(at, { min = "", max = "", text = "" }) {
    const { kind, decimals } = this.columns[at];
    const values = this.values[at];
    if (kind !== "number" && kind !== "time") {
      if (text.startsWith("=")) return (row) => values[row] === text.slice(1);
      const holds = holding(text);
      return (row) => holds(values[row]);
    }
    const keys = /** @type {(bigint | number | null)[]} */ (this.keys(at));
    // Up to a day is before the next one.
    const isDay = kind === "time" && /^\d{4}-\d\d-\d\d$/.test(max);
    const below = isDay || max.trim().startsWith("<");
    const read = (/** @type {string} */ typed, /** @type {boolean} */ isMost) => {
      if (kind === "time") return instant(typed) + (isMost && isDay ? DAY : 0);
      const plain = plainNumber(typed);
      if (plain === null) return Number.NaN;
      if (typeof decimals !== "number") return Number(plain);
      return scaled(plain, decimals)[isMost && !below ? "floor" : "ceiling"];
    };
    const [low, high] = [min && read(min, false), max && read(max.replace(/^\s*<\s*/, ""), true)];
    if (Number.isNaN(low) || Number.isNaN(high))
      return kind === "time"
        ? "Write 2025-01-31 or 2025-01-31T12:00:00Z."
        : "That is not a number. Write digits, such as 1000 or 0.5.";
    const isBelow = (/** @type {bigint | number} */ one) => high === "" || (below ? one < high : one <= high);
    return (row) => {
      const one = keys[row];
      return one !== null && (low === "" || one >= low) && isBelow(one);
    };
  }

  /** @param {number} at @param {number} way @returns {(a: number, b: number) => number} missing values are last, either way */
  comparison(at, way) {
    const keys = this.keys(at);
    return (a, b) => {
      const one = keys[a];
      const other = keys[b];
      if (one === null || other === null) return Number(one === null) - Number(other === null);
      return one < other ? -way : one > other ? way : 0;
    };
  }

  /** @param {number} from @param {number} to @returns {Promise<(string | null)[][]>} */
  async rows(from, to) {
    return Array.from(this.places.subarray(from, to), (row) => this.values.map((values) => values[row]));
  }

  /** Bars are of those rows, too, that the column's own filter alone leaves out. @param {number} at @returns {Promise<Summary>} */
  async summary(at) {
    const { kind, decimals } = this.columns[at];
    const [keys, values] = [this.keys(at), this.values[at]];
    const rows = this.places.filter((row) => keys[row] !== null);
    const made = { bars: this.bars(at), missing: this.places.length - rows.length };
    const known = Array.from(rows, (row) => /** @type {any} */ (keys[row]));
    if (kind !== "number" && kind !== "time") return { ...made, distinct: new Set(known).size };
    if (!rows.length) return made;
    const compare = this.comparison(at, 1);
    const [least, most] = rows.reduce(
      ([low, high], row) => [compare(row, low) < 0 ? row : low, compare(row, high) > 0 ? row : high],
      [rows[0], rows[0]],
    );
    const ends = { min: values[least] ?? "", max: values[most] ?? "" };
    if (kind === "time") return { ...made, ...ends };
    const sum = known.reduce((sum, one) => sum + one);
    if (typeof sum === "bigint") return { ...made, ...ends, sum: unitsText(String(sum), decimals ?? 0) };
    return { ...made, ...ends, sum: Number.isFinite(sum) ? `about ${sum}` : sixDigits(sum) };
  }

  /** @param {number} at @returns {import("./histogram.js").Bar[]} */
  bars(at) {
    const { kind } = this.columns[at];
    const keys = this.keys(at);
    const all = this.tests.has(at) ? this.matching(at) : this.places;
    const known = Array.from(all, (row) => keys[row]).filter((one) => one !== null);
    /** @type {import("./histogram.js").Bar[]} */
    let bars = [];
    if (kind === "number" || kind === "time") bars = this.bins[at].map((bin) => this.filled(at, bin, all));
    else if (kind !== "address") bars = names(known.map(String));
    // The empty ones at both ends say nothing.
    const full = bars.map(({ count }) => count > 0);
    bars = bars.slice(Math.max(0, full.indexOf(true)), full.lastIndexOf(true) + 1);
    const missing = all.length - known.length;
    return missing ? [...bars, { name: "missing", count: missing }] : bars;
  }

  /** A bin, with how many of some rows its filter takes. @param {number} at @param {import("./histogram.js").Bar} bin @param {Uint32Array} rows */
  filled(at, bin, rows) {
    const fits = /** @type {(row: number) => boolean} */ (this.test(at, bin));
    return { ...bin, count: rows.filter(fits).length };
  }
}

/** Whether a text has another one in it, in letters of either case, as Arrow compares them. @param {string} part */
function holding(part) {
  const found = new RegExp(part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "iu");
  return (/** @type {string | null} */ text) => text !== null && found.test(text);
}

/** The values that most rows have; nothing where most have one of their own. @param {string[]} values */
function names(values) {
  /** @type {Map<string, number>} */
  const counted = new Map();
  for (const value of values) counted.set(value, (counted.get(value) ?? 0) + 1);
  if (counted.size > values.length / 2) return [];
  const largest = [...counted].sort(([x, a], [y, b]) => b - a || (x < y ? -1 : 1)).slice(0, MOST_NAMES);
  return largest.map(([name, number]) => ({ name, count: number, text: `=${name}` }));
}
