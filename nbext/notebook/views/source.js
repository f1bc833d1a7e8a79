// @ts-check
// A table that is here whole: sorted and filtered as Python does it for one that is in the kernel, exactly.
import { instant, plainNumber, scaled, sixDigits, unitsText } from "./numbers.js";

/** @typedef {{ name: string, kind: "number" | "text" | "address" | "time" | "flag", unit?: string, share?: boolean, id?: boolean, decimals?: number }} Column */
/** @typedef {{ min?: string, max?: string, text?: string }} Bounds  a max that begins with < is left out; a text after = is whole */
/** @typedef {{ order: [number, "ascending" | "descending"][], filters: Record<string, Bounds>, search: string }} Asked */
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
  /** @param {(Column & { texts?: string, digits?: string, bins: import("./histogram.js").Bar[] })[]} columns  the exact texts of all rows, or the digits of addresses; bins of all */
  constructor(columns, /** @type {number} */ total) {
    this.columns = columns;
    this.bins = columns.map(({ bins }) => bins);
    this.total = total;
    this.values = columns.map(({ texts = "", digits }) => {
      if (digits)
        return Array.from({ length: total }, (_, row) => `0x${digits.slice(40 * row, 40 * row + 40)}`);
      return total ? texts.split(BETWEEN) : [];
    });
    /** @type {Map<number, Float64Array>} */
    this.known = new Map();
    /** @type {Map<number, (bigint | null)[]>} */
    this.whole = new Map();
    /** @type {Map<number, (row: number) => boolean>} */
    this.tests = new Map();
    this.places = this.matching();
  }

  /** The exact text of a cell, null where it is missing. @param {number} row @param {number} at @returns {string | null} */
  text(row, at) {
    const value = this.values[at][row];
    return value === MISSING ? null : value;
  }

  /** Floats of a column to draw and to sort by; those that are alike are compared by their digits. @param {number} at */
  numbers(at) {
    let made = this.known.get(at);
    if (!made) {
      const read =
        this.columns[at].kind === "time"
          ? instant
          : (/** @type {string} */ value) => Number(value.replace("inf", "Infinity")); // as Python writes it
      made = Float64Array.from(this.values[at], (value) => (value === MISSING ? Number.NaN : read(value)));
      this.known.set(at, made);
    }
    return made;
  }

  /** Exact numbers of a column, in the smallest unit; null for those that are floats. @param {number} at */
  integers(at) {
    const { decimals = 0 } = this.columns[at];
    const digits = new RegExp(`^-?\\d+${decimals ? `(\\.\\d{1,${decimals}})?` : ""}$`);
    const made =
      this.whole.get(at) ??
      this.values[at].map((value) => (digits.test(value) ? scaled(value, decimals).floor : null));
    this.whole.set(at, made);
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
    const small = search.toLowerCase();
    const texts = this.columns
      .map((_, at) => at)
      .filter((at) => ["text", "address"].includes(this.columns[at].kind));
    if (small)
      this.tests.set(SEARCH, (row) => texts.some((at) => this.values[at][row].toLowerCase().includes(small)));
    this.places = this.matching();
    const compare = order.map(([at, way]) => this.comparison(at, way === "ascending" ? 1 : -1));
    if (compare.length) {
      this.places.sort((a, b) => {
        for (const one of compare) {
          const apart = one(a, b);
          if (apart) return apart;
        }
        return a - b;
      });
    }
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
    const { kind, decimals = 0 } = this.columns[at];
    const values = this.values[at];
    if (kind !== "number" && kind !== "time") {
      if (text.startsWith("=")) return (row) => values[row] === text.slice(1);
      const small = text.toLowerCase();
      return (row) => values[row] !== MISSING && values[row].toLowerCase().includes(small);
    }
    const below = max.trim().startsWith("<");
    const exact =
      kind === "number" && this.integers(at).every((one, row) => one !== null || values[row] === MISSING);
    const read = (/** @type {string} */ typed, /** @type {boolean} */ isMost) => {
      if (kind === "time") {
        const isDay = /^\d{4}-\d\d-\d\d$/.test(typed);
        return instant(typed) + (isMost && isDay && !below ? DAY - 1 : 0);
      }
      const plain = plainNumber(typed);
      if (plain === null) return Number.NaN;
      return exact ? scaled(plain, decimals)[isMost && !below ? "floor" : "ceiling"] : Number(plain);
    };
    const [low, high] = [min && read(min, false), max && read(max.replace(/^\s*<\s*/, ""), true)];
    if (Number.isNaN(low) || Number.isNaN(high))
      return kind === "time"
        ? "Write 2025-01-31 or 2025-01-31T12:00:00Z."
        : "That is not a number. Write digits, such as 1000 or 0.5.";
    const numbers = exact ? this.integers(at) : this.numbers(at);
    return (row) => {
      const one = numbers[row];
      const isKnown = one !== null && !Number.isNaN(one);
      return isKnown && (low === "" || one >= low) && (high === "" || (below ? one < high : one <= high));
    };
  }

  /** @param {number} at @param {number} way @returns {(a: number, b: number) => number} missing values are last, either way */
  comparison(at, way) {
    const values = this.values[at];
    const missing = (/** @type {number} */ a, /** @type {number} */ b) =>
      Number(values[a] === MISSING) - Number(values[b] === MISSING);
    if (this.columns[at].kind === "number" || this.columns[at].kind === "time") {
      const numbers = this.numbers(at);
      const integers = this.integers(at);
      return (a, b) => {
        const apart = numbers[a] - numbers[b];
        if (apart) return way * apart;
        const [one, other] = [integers[a], integers[b]];
        if (one !== null && other !== null && one !== other) return one < other ? -way : way;
        return missing(a, b);
      };
    }
    return (a, b) => missing(a, b) || (values[a] < values[b] ? -way : values[a] > values[b] ? way : 0);
  }

  /** @param {number} from @param {number} to @returns {Promise<(string | null)[][]>} */
  async rows(from, to) {
    return Array.from(this.places.subarray(from, to), (row) =>
      this.columns.map((_, at) => this.text(row, at)),
    );
  }

  /** Bars are of those rows, too, that the column's own filter alone leaves out. @param {number} at @returns {Promise<Summary>} */
  async summary(at) {
    const { kind, decimals = 0 } = this.columns[at];
    const values = this.values[at];
    const rows = this.places.filter((row) => values[row] !== MISSING);
    const made = { bars: this.bars(at), missing: this.places.length - rows.length };
    if (kind !== "number" && kind !== "time")
      return { ...made, distinct: new Set(Array.from(rows, (row) => values[row])).size };
    if (!rows.length) return made;
    const compare = this.comparison(at, 1);
    const [least, most] = rows.reduce(
      ([low, high], row) => [compare(row, low) < 0 ? row : low, compare(row, high) > 0 ? row : high],
      [rows[0], rows[0]],
    );
    const ends = { min: this.text(least, at) ?? "", max: this.text(most, at) ?? "" };
    if (kind === "time") return { ...made, ...ends };
    const integers = this.integers(at);
    const exact = rows.every((row) => integers[row] !== null);
    if (exact) {
      const sum = rows.reduce((sum, row) => sum + /** @type {bigint} */ (integers[row]), 0n);
      return { ...made, ...ends, sum: unitsText(String(sum), decimals) };
    }
    const sum = rows.reduce((sum, row) => sum + this.numbers(at)[row], 0);
    return { ...made, ...ends, sum: Number.isFinite(sum) ? `about ${sum}` : sixDigits(sum) };
  }

  /** @param {number} at @returns {import("./histogram.js").Bar[]} */
  bars(at) {
    const { kind } = this.columns[at];
    const values = this.values[at];
    const all = this.tests.has(at) ? this.matching(at) : this.places;
    const rows = all.filter((row) => values[row] !== MISSING);
    /** @type {import("./histogram.js").Bar[]} */
    let bars = [];
    if (kind === "number" || kind === "time") {
      const finite = Array.from(rows, (row) => this.numbers(at)[row]).filter(Number.isFinite);
      bars = filled(this.bins[at], finite, kind === "time" ? instant : Number);
    } else if (kind !== "address") bars = names(Array.from(rows, (row) => values[row]));
    const missing = all.length - rows.length;
    return missing ? [...bars, { name: "missing", count: missing }] : bars;
  }
}

/** The values that most rows have; nothing where most have one of their own. @param {string[]} values */
function names(values) {
  /** @type {Map<string, number>} */
  const counted = new Map();
  for (const value of values) counted.set(value, (counted.get(value) ?? 0) + 1);
  if (counted.size > values.length / 2) return [];
  const largest = [...counted].sort(([, a], [, b]) => b - a).slice(0, MOST_NAMES);
  return largest.map(([name, number]) => ({ name, count: number, text: `=${name}` }));
}

/**
 * Bins, with how many of some of their numbers are in each, without the empty ones at both ends.
 * @param {import("./histogram.js").Bar[]} bins @param {number[]} values @param {(bound: string) => number} read
 */
function filled(bins, values, read) {
  const edges = bins.map(({ min = "" }) => read(min));
  const bars = bins.map((bin) => ({ ...bin, count: 0 }));
  for (const value of values) {
    const at = edges.findLastIndex((edge) => edge <= value);
    bars[Math.max(0, at)].count++;
  }
  const full = bars.map((bar) => bar.count > 0);
  return bars.slice(full.indexOf(true), full.lastIndexOf(true) + 1);
}
