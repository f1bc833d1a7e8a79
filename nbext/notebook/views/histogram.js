// @ts-check
// How values are spread, in the bins that `forms/distribution.py` makes: bars that filter.
import { around, h } from "./dom.js";
import { count, instant, plainNumber } from "./numbers.js";

/** @typedef {import("./source.js").Bounds} Bounds */
/** @typedef {{ name: string, count: number } & Bounds} Bar  with what a press on it filters; without that, rows where it is missing */

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
  const number = (/** @type {string} */ bound) => {
    const end = bound.replace("<", "").trim();
    return /\d-\d\d-/.test(end) ? instant(end) : Number(plainNumber(end) ?? Number.NaN);
  };
  // A bound that is missing is no number, and below none.
  const isBelow = (end = "", start = "") =>
    end.startsWith("<") ? number(end) <= number(start) : number(end) < number(start);
  const asked = [filter.min, filter.max].filter((bound) => bound !== undefined);
  const isNumber = asked.every((bound) => !Number.isNaN(number(bound)));
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
    const lies = named && !isMissing;
    const inner = h("i");
    // Not as an attribute, which the policy of a page from disk forbids.
    inner.style[lies ? "width" : "height"] = `${number ? Math.max(6, (100 * number) / most) : 0}%`;
    const kind = isMissing ? "nbt-bar nbt-missing" : "nbt-bar";
    const props = { class: kind, title: `${name}: ${count(number)}`, "data-bar": isMissing ? null : at };
    return h("span", props, inner, lies && h("small", null, name));
  });
  const spoken = bars.map((bar) => `${bar.name}: ${count(bar.count)}`).join("; ");
  const box = h("div", { role: "img", "aria-label": spoken }, ...drawn);
  box.className = named ? "nbt-bars nbt-names" : "nbt-bars";
  const at = (/** @type {Event} */ event) => Number(around(event, "[data-bar]")?.dataset.bar ?? -1);
  const mark = () => {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    for (const [i, bar] of drawn.entries())
      bar.classList.toggle("nbt-brushed", from < 0 ? isTaken(bars[i], held) : first <= i && i <= last);
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
