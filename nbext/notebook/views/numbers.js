// @ts-check
// Numbers, shares and times as people read them: `results/numbers.py` writes the same, held to the same table of cases.

const SHORT = /** @type {[number, string][]} */ ([
  [1e12, "T"],
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "k"],
]);
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const GROUPED = /^-?\d{1,3}([,_]\d{3})+(\.\d+)?$/;

/** @param {string} text */
const withoutZeros = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
/** Sets the thousands of plain digits apart. @param {string} text */
export function grouped(text) {
  const [whole, fraction] = text.split(".");
  const digits = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? digits : `${digits}.${fraction}`;
}

/** @param {number} number */
export const count = (number) => grouped(String(number));

/** @param {number} value @param {number} digits */
function exponential(value, digits) {
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  return `${withoutZeros(mantissa)}e${power}`;
}

/** @param {number} value @param {number} digits  toPrecision without an exponent */
function significant(value, digits) {
  const power = Number(value.toExponential(digits - 1).split("e")[1]);
  return withoutZeros(
    power >= digits ? String(Number(value.toPrecision(digits))) : value.toFixed(digits - 1 - power),
  );
}

/** Six significant digits, whole from a million on. @param {number} value */
export function sixDigits(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf").replace("NaN", "nan");
  if (value === 0) return "0";
  if (size < 1e-6 || size >= 1e15) return exponential(value, 6);
  return grouped(size >= 1e6 ? value.toFixed(0) : significant(value, 6));
}

/** A share as per cent, with four significant digits. @param {number} value */
export const shareText = (value) => `${value * 100 === 0 ? "0" : grouped(significant(value * 100, 4))}%`;

/** An edge of a bin. @param {number} value */
export function shortText(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) return exponential(value, 6);
  const [unit, letter] = SHORT.find(([one]) => size >= one) ?? [1, ""];
  return `${Number((value / unit).toPrecision(6))}${letter}`;
}

/** Digits of the smallest unit in the token's. @param {string} raw @param {number} decimals */
export function unitsText(raw, decimals) {
  if (!decimals) return raw;
  const minus = raw.startsWith("-") ? "-" : "";
  const digits = raw.replace("-", "").padStart(decimals + 1, "0");
  return minus + withoutZeros(`${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`);
}

/** What is typed as plain digits, or null. @param {string} typed */
export function plainNumber(typed) {
  const said = typed.trim();
  // Only between thousands: 0,5 is not 5.
  const text = GROUPED.test(said) ? said.replace(/[,_]/g, "") : said;
  return NUMBER.test(text) ? text : null;
}

/** What is typed, in the smallest unit: the whole part, and whether something is left. @param {string} typed @param {number} decimals */
export function scaled(typed, decimals) {
  const [mantissa, power = "0"] = typed.toLowerCase().split("e");
  const [whole, fraction = ""] = mantissa.replace("+", "").split(".");
  const places = decimals + Math.max(-400, Math.min(400, Number(power)));
  const digits = whole.replace("-", "") + fraction;
  const point = digits.length - fraction.length + places;
  const kept = BigInt(digits.slice(0, Math.max(0, point)).padEnd(Math.max(0, point), "0") || "0");
  const left = /[1-9]/.test(digits.slice(Math.max(0, point)));
  if (!whole.startsWith("-")) return { floor: kept, ceiling: kept + (left ? 1n : 0n) };
  return { floor: -kept - (left ? 1n : 0n), ceiling: -kept };
}
