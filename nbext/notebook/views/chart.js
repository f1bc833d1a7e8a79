// @ts-check
// A chart whose marks are buttons: the picture is Python's, of the same description as the chart beside it.
import { around, h, put, stopAt, text, walk } from "./dom.js";
import { Html } from "./form.js";

/** @typedef {import("./link.js").Message} Message */

// What a picture is drawn of. Anything else that a text could become is left out.
const SHAPES = "svg g path text tspan line defs linearGradient stop clipPath rect".split(" ");

/** @param {string} svg @returns {Element} */
function picture(svg) {
  const { documentElement } = new DOMParser().parseFromString(svg, "image/svg+xml");
  const drawn = document.importNode(documentElement, true);
  // The form has them, above the chart.
  for (const one of drawn.querySelectorAll(".role-title")) one.remove();
  for (const one of drawn.querySelectorAll("*")) {
    if (!SHAPES.includes(one.tagName)) one.remove();
    for (const { name } of [...one.attributes])
      if (/^(on|aria|role)|href/i.test(name)) one.removeAttribute(name);
  }
  // Each mark says what it shows; loose numbers and names would only repeat it.
  for (const one of drawn.querySelectorAll("text, line")) put(one, "aria-hidden", "true");
  return drawn;
}

// How large a chart is at most, and at least before it is scrolled: drawn, its letters have ten pixels, and a notebook's
// have twelve.
const [LEAST, MOST] = [0.65, 1.2];

/** Python measures names in a font of its own, and that of the page may be wider. @param {SVGGraphicsElement} svg */
function fit(svg) {
  const { x, y, width, height } = svg.getBBox();
  if (!width) return;
  put(svg, "viewBox", `${x - 2} ${y - 2} ${width + 4} ${height + 4}`);
  put(svg, "width", MOST * width);
  put(svg, "height", null);
  svg.style.minWidth = `${LEAST * width}px`;
}

export class Chart extends Html {
  /** @param {import("./link.js").Link} link @param {number} id @param {Message} shown */
  constructor(link, id, { svg, marks, title }) {
    super(link, id, { classes: "nbext-chart" });
    const hint = "Press a cell, bar or point: its wallets open below, and their segment as a cell.";
    this.note = h("div", "nbext-note", hint);
    const drawn = picture(svg);
    for (const layer of drawn.querySelectorAll('[class*=" press"]')) {
      [...layer.children].forEach((mark, at) => {
        if (marks[at]) this.mark(mark, at, marks[at]);
      });
    }
    stopAt(this.buttons.length ? this.buttons : [drawn]);
    this.el.append(h("div", { role: "group", "aria-label": title }, drawn), this.note);
    requestAnimationFrame(() => fit(/** @type {SVGGraphicsElement} */ (drawn)));
  }

  /** @param {Element} mark @param {number} at @param {string} words */
  mark(mark, at, words) {
    const props = { class: "nbext-press", role: "button", "aria-label": words, "data-at": at };
    for (const [name, value] of Object.entries(props)) put(mark, name, value);
    for (const type of ["pointerenter", "focus"]) mark.addEventListener(type, () => text(this.note, words));
    this.buttons.push(/** @type {HTMLElement} */ (mark));
  }

  /** @param {Event} event */
  press(event) {
    const mark = around(event, ".nbext-press");
    if (!mark) return;
    for (const one of this.buttons) put(one, "aria-pressed", one === mark ? "true" : null);
    stopAt(this.buttons, mark);
    mark.focus({ preventScroll: true });
    this.link.send(this.id, "press", { at: mark.dataset.at });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const presses = event.key === "Enter" || event.key === " ";
    if (walk(event, this.buttons) || !presses || !around(event, ".nbext-press")) return;
    this.press(event);
    event.preventDefault();
    event.stopPropagation();
  }
}
