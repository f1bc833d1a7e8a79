// @ts-check
// Draws the results of a search and turns their pages. Python holds them: what is pressed here is sent as a message.
import { active, h, press, put, text } from "./dom.js";
import { count } from "./numbers.js";

/** @typedef {import("./link.js").Message} Message */

const HEADS = ["Name", "Symbol", "Standard", "Owners", "Marks"];
const OWNERS = 3;

export class Results {
  /** @param {import("./link.js").Link} link @param {number} id @param {Message} shown */
  constructor(link, id, shown) {
    this.link = link;
    this.id = id;
    this.shown = shown;
    this.at = 0;
    this.drawn = "";
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    const heads = HEADS.map((name, at) =>
      h("span", { role: "columnheader", title: name, class: at === OWNERS ? "nbext-number" : null }, name),
    );
    this.rows = h("div", { role: "rowgroup", class: "nbext-rows" });
    this.grid = h(
      "div",
      {
        role: "grid",
        "aria-label": "Results",
        "aria-colcount": HEADS.length,
        class: "nbext-grid",
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      },
      h(
        "div",
        { role: "rowgroup" },
        h("div", { role: "row", "aria-rowindex": 1, class: "nbext-line nbext-heads" }, ...heads),
      ),
      this.rows,
    );
    // Never disabled: a button that is loses the focus to the page's body.
    this.back = press("Previous", () => this.turn(this.back, "back"));
    this.on = press("Next", () => this.turn(this.on, "next"));
    this.number = h("input", {
      type: "text",
      inputmode: "numeric",
      "aria-label": "Page",
      onchange: () => this.toPage(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Enter") this.toPage();
      },
    });
    this.pages = h("span");
    this.pager = h("div", { class: "nbext-pager" }, this.back, this.number, this.pages, this.on);
    this.el = h("div", { class: "nbext-results" }, this.grid, this.pager);
    this.update(shown);
  }

  /** @param {HTMLElement} button @param {string} op */
  turn(button, op) {
    if (button.getAttribute("aria-disabled") !== "true") this.link.send(this.id, op);
  }

  toPage() {
    const page = /^\s*\d{1,9}\s*$/.test(this.number.value) ? Number(this.number.value) : 0;
    if (page > 0 && !this.shown.older) this.link.send(this.id, "page", { page });
    else this.number.value = String(this.shown.page);
  }

  /** @param {Message} changes */
  update(changes) {
    Object.assign(this.shown, changes);
    const { rows, start, total, page, pages, more, older, picked } = this.shown;
    this.grid.hidden = !rows.length;
    this.pager.hidden = !more && start === 0;
    put(this.grid, "aria-rowcount", total === null ? -1 : total + 1);
    const made = JSON.stringify([start, rows]);
    if (made !== this.drawn) {
      this.drawn = made;
      const focused = this.rows.contains(active(this.el));
      this.at = 0;
      this.buttons = rows.map((/** @type {any[]} */ cells, /** @type {number} */ at) =>
        this.button(cells[0], at),
      );
      this.rows.replaceChildren(
        ...rows.map((/** @type {any} */ cells, /** @type {number} */ at) => this.row(cells, at, start)),
      );
      this.grid.scrollTop = 0;
      if (focused && rows.length) this.buttons[0].focus();
    }
    this.grid.classList.toggle("nbext-older", older);
    this.stand(this.at);
    this.buttons.forEach((button, at) => {
      put(button, "aria-disabled", String(older));
      this.rows.children[at].classList.toggle("nbext-picked", at === picked);
      put(this.rows.children[at], "aria-selected", String(at === picked));
    });
    put(this.back, "aria-disabled", String(older || start === 0));
    put(this.on, "aria-disabled", String(older || !more));
    this.number.readOnly = older;
    this.number.value = String(page);
    text(this.pages, pages === null ? "" : `of ${count(pages)}`);
  }

  /** @param {string} name @param {number} at */
  button(name, at) {
    return h(
      "button",
      {
        type: "button",
        class: "nbext-name",
        title: `Show the metadata of ${name}`,
        onfocus: () => this.stand(at),
        onclick: () => {
          if (!this.shown.older) this.link.send(this.id, "pick", { at });
        },
      },
      name,
    );
  }

  /** @param {[string, string, string, string, [string, string][]]} cells  name, symbol, standard, owners, marks @param {number} at @param {number} start */
  row([, symbol, standard, owners, marks], at, start) {
    const cell = (/** @type {string} */ said, /** @type {string} */ kind = "") =>
      h("span", { role: "gridcell", title: said || null, class: kind || null }, said);
    return h(
      "div",
      { role: "row", "aria-rowindex": start + at + 2, class: "nbext-line" },
      h("span", { role: "gridcell" }, this.buttons[at]),
      cell(symbol),
      cell(standard),
      cell(owners, "nbext-number"),
      h(
        "span",
        { role: "gridcell", title: marks.map(([, words]) => words).join(", ") || null },
        ...marks.map(([kind, words]) => h("span", { class: `nbext-mark nbext-mark-${kind}` }, words)),
      ),
    );
  }

  /** @param {number} at */
  stand(at) {
    this.at = at;
    this.buttons.forEach((button, place) => {
      button.tabIndex = place === at ? 0 : -1;
    });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const last = this.buttons.length - 1;
    const to = {
      ArrowDown: Math.min(this.at + 1, last),
      ArrowUp: Math.max(this.at - 1, 0),
      Home: 0,
      End: last,
    }[event.key];
    if (to !== undefined) this.buttons[to].focus();
    else if (event.key === "PageDown") this.turn(this.on, "next");
    else if (event.key === "PageUp") this.turn(this.back, "back");
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
