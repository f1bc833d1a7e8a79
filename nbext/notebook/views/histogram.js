// @ts-check
// How values are spread: bins by the data, as `forms/distribution.py` makes them, held to the same table of cases.
import { h } from "./dom.js";
import { count, grouped, plainNumber, shortText } from "./numbers.js";

/** @typedef {import("./source.js").Bounds} Bounds */
/** @typedef {{ name: string, count: number } & Bounds} Bar  with what a press on it filters; without that, rows where it is missing */

const MOST = 24; // up to so many whole numbers get a bar each
const BINS = 10;

/** @param {string} low @param {string} high */
const between = (low, high) => ({
  name: `${shortText(Number(low))} to ${shortText(Number(high))}`,
  count: 0,
  min: low,
  max: `< ${high}`,
});

/** @param {number[]} values  finite numbers @returns {Bar[]} */
export function bins(values) {
  if (!values.length) return [];
  let [least, most, whole, above, small] = [Infinity, -Infinity, true, Infinity, 0];
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
    if (value > 0 && value < above) above = value;
    if (whole && value !== Math.floor(value)) whole = false;
  }
  if (whole && most - least < MOST) {
    const bars = Array.from({ length: most - least + 1 }, (_, at) => ({
      name: grouped(String(least + at)),
      count: 0,
      min: String(least + at),
      max: String(least + at),
    }));
    for (const value of values) bars[value - least].count++;
    return bars;
  }
  const width = most / BINS - least / BINS;
  if (width < 1e-300)
    return [{ name: shortText(least), count: values.length, min: String(least), max: String(least) }];
  let positive = 0;
  for (const value of values)
    if (value > 0) {
      positive++;
      if (value < most / 10) small++;
    }
  // Drawn so, numbers that are spread evenly would look as if they grew: only where equal bins would be one alone.
  const wide = least >= 0 && most / 1000 >= above && small / positive > 0.8;
  const written = wide ? powers(above, most) : steps(least, most, width);
  const edges = written.map(Number);
  const bars = written.slice(1).map((high, at) => between(written[at], high));
  // The largest may lie on the last edge.
  bars[bars.length - 1].max = written[written.length - 1];
  let none = 0;
  for (const value of values) {
    if (wide && value <= 0) none++;
    else bars[place(edges, value)].count++;
  }
  const filled = bars.map((bar) => bar.count > 0);
  const kept = bars.slice(filled.indexOf(true), filled.lastIndexOf(true) + 1);
  return none ? [{ name: "0", count: none, min: "0", max: "0" }, ...kept] : kept;
}

/** @param {number} above @param {number} most */
function powers(above, most) {
  const [first, last] = [Math.floor(Math.log10(above)), Math.floor(Math.log10(most)) + 1];
  const written = [];
  for (let power = first; power < last; power++)
    for (const step of last - first <= 4 ? [1, 2, 5] : [1]) written.push(`${step}e${power}`);
  return [...written, `1e${last}`];
}

/** @param {number} least @param {number} most @param {number} width */
function steps(least, most, width) {
  const power = Math.floor(Math.log10(width));
  const step = [1, 2, 5, 10].find((one) => Number(`${one}e${power}`) >= width) ?? 10;
  const [low, high] = [least, most].map((end) => Math.floor(end / Number(`${step}e${power}`)));
  return Array.from({ length: high - low + 2 }, (_, at) => `${step * (low + at)}e${power}`);
}

/** @param {number[]} edges @param {number} value */
function place(edges, value) {
  let at = 0;
  while (at < edges.length - 2 && value >= edges[at + 1]) at++;
  return at;
}

/** Whether bars grow, which a reader has to be told. @param {Bar[]} bars */
export function grows(bars) {
  const [last = 0, before = 0] = bars
    .slice(-2)
    .reverse()
    .map(({ min, max }) => Number((max ?? "").replace("< ", "")) - Number(min));
  return last > 1.5 * before && before > 0;
}

/** Whether a filter takes something of what a bar counts. @param {Bar} bar @param {Bounds} filter */
export function isTaken({ text, min, max }, filter) {
  if (text !== undefined || min === undefined) return text !== undefined && text === filter.text;
  const number = (/** @type {string} */ bound) =>
    /\d-\d\d-/.test(bound)
      ? Date.parse(bound.replace(/^<\s*/, ""))
      : Number(plainNumber(bound.replace("<", "")) ?? Number.NaN);
  const isBelow = (/** @type {string | undefined} */ end, /** @type {string | undefined} */ start) =>
    Boolean(
      end && start && (number(end) < number(start) || (end.startsWith("<") && number(end) === number(start))),
    );
  const asked = [filter.min, filter.max].filter(Boolean);
  const isNumber = asked.every((bound) => !Number.isNaN(number(String(bound))));
  return asked.length > 0 && isNumber && !isBelow(max, filter.min) && !isBelow(filter.max, min);
}

/**
 * Bars that can be pressed, and brushed over: the filter of the first to the last. Those that the present filter takes
 * look brushed over.
 * @param {Bar[]} bars @param {Bounds} held @param {(filter: Bounds) => void} filter
 */
export function histogram(bars, held, filter) {
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  let [from, to] = [-1, -1];
  const named = bars[0].text !== undefined;
  const drawn = bars.map(({ name, count: number, text, min }, at) => {
    const isMissing = text === undefined && min === undefined;
    const inner = h("i", null);
    const lies = named && !isMissing;
    inner.style[lies ? "width" : "height"] = `${number ? Math.max(6, (100 * number) / most) : 0}%`;
    return h(
      "span",
      {
        class: isMissing ? "nbt-bar nbt-missing" : "nbt-bar",
        title: `${name}: ${count(number)}`,
        "data-bar": isMissing ? null : at,
      },
      inner,
      lies ? h("small", null, name) : null,
    );
  });
  const spoken = bars.map((bar) => `${bar.name}: ${count(bar.count)}`).join("; ");
  const box = h(
    "div",
    { class: named ? "nbt-bars nbt-names" : "nbt-bars", role: "img", "aria-label": spoken },
    ...drawn,
  );
  const at = (/** @type {Event} */ event) =>
    Number(
      /** @type {HTMLElement} */ (/** @type {Element} */ (event.target).closest("[data-bar]"))?.dataset.bar ??
        -1,
    );
  const mark = () => {
    for (const [i, bar] of drawn.entries())
      bar.classList.toggle(
        "nbt-brushed",
        from < 0 ? isTaken(bars[i], held) : i >= Math.min(from, to) && i <= Math.max(from, to),
      );
  };
  mark();
  box.onpointerdown = (event) => {
    from = to = at(event);
    mark();
  };
  box.onpointermove = (event) => {
    // Not over the bar of what is missing, which no filter takes.
    if (from < 0 || !event.buttons || at(event) < 0) return;
    to = at(event);
    mark();
  };
  box.onpointerleave = () => {
    from = -1;
    mark();
  };
  box.onpointerup = () => {
    if (from < 0) return;
    const [first, last] = [bars[Math.min(from, to)], bars[Math.max(from, to)]];
    from = -1;
    filter(first.text === undefined ? { min: first.min, max: last.max } : { text: first.text });
  };
  box.onclick = (event) => event.stopPropagation();
  return box;
}
