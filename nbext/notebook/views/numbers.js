// @ts-check
// Numbers, shares and times as people read them. Python has the same functions (`six_digits` and those beside it), held
// to the same table of cases.

const SIX = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const TINY = new Intl.NumberFormat("en", { maximumSignificantDigits: 6, notation: "scientific" });
const PERCENT = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, style: "percent" });
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](?!\d\d:\d\d\.)(\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|[+-]\d\d:\d\d)?)?$/i;
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

/** Six significant digits, whole from a million on. @param {number} value */
export function sixDigits(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf").replace("NaN", "nan");
  if (value === 0) return "0";
  if (size >= 1e-6 && size < 1e15) return (size >= 1e6 ? WHOLE : SIX).format(value);
  return TINY.format(value).replace("E-", "e-").replace("E", "e+");
}

/** A share as per cent, with four significant digits. @param {number} value */
export const shareText = (value) => PERCENT.format(value || 0);

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

/** Seconds since 1970 of a time, in UTC where it names no zone; NaN of another text. @param {string} time */
export function instant(time) {
  const [, day, clock, fraction = "0", zone = "Z"] = time.match(TIME) ?? [];
  // 2025-02-30 would be a day in March.
  if (!(new Date(day ?? "").toJSON() ?? "").startsWith(day)) return Number.NaN;
  // The fraction apart: a Date cuts it to thousandths.
  return Date.parse(clock ? `${day}T${clock}${zone}` : (day ?? "")) / 1000 + Number(fraction);
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
