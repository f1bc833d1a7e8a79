// @ts-check
// A chart whose marks are buttons: the picture is Python's, of the same description as the chart beside it.
import { h, put, stopAt, text, walk } from "./dom.js";

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

export class Chart {
  /** @param {import("./link.js").Link} link @param {number} id @param {Message} shown */
  constructor(link, id, { svg, marks, title }) {
    this.link = link;
    this.id = id;
    const drawn = picture(svg);
    /** @type {Element[]} */
    this.marks = [];
    for (const layer of drawn.querySelectorAll('[class*=" press"]')) {
      [...layer.children].forEach((mark, at) => {
        if (marks[at]) this.mark(mark, at, marks[at]);
      });
    }
    stopAt(this.marks.length ? this.marks : [drawn]);
    const hint = "Press a cell, bar or point: its wallets open below, and their segment as a cell.";
    this.note = h("div", "nbext-note", hint);
    this.el = h("div", "nbext-chart", h("div", { role: "group", "aria-label": title }, drawn), this.note);
    this.el.addEventListener("keydown", (event) => this.key(event));
    requestAnimationFrame(() => fit(/** @type {SVGGraphicsElement} */ (drawn)));
  }

  /** @param {Element} mark @param {number} at @param {string} words */
  mark(mark, at, words) {
    put(mark, "class", "nbext-press");
    put(mark, "role", "button");
    put(mark, "aria-label", words);
    const say = () => text(this.note, words);
    mark.addEventListener("pointerenter", say);
    mark.addEventListener("focus", say);
    mark.addEventListener("click", () => {
      for (const one of this.marks) put(one, "aria-pressed", one === mark ? "true" : null);
      stopAt(this.marks, mark);
      /** @type {SVGElement} */ (mark).focus({ preventScroll: true });
      this.link.send(this.id, "press", { at });
    });
    this.marks.push(mark);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const mark = /** @type {Element} */ (event.target);
    const presses = event.key === "Enter" || event.key === " ";
    if (walk(event, this.marks) || !presses || !this.marks.includes(mark)) return;
    mark.dispatchEvent(new MouseEvent("click"));
    event.preventDefault();
    event.stopPropagation();
  }
}
