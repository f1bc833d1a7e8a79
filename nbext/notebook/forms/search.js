// Draws the results of a search and turns their pages. Python holds them: what is pressed here is sent as a message, and
// comes back as the trait `view`. A stranger's text becomes text nodes and attributes alone.

const HEADS = ["Name", "Symbol", "Standard", "Owners", "Marks"];
const MARKS = [["✓ verified", "nbext-mark nbext-mark-good"], ["⚠ possible spam", "nbext-mark nbext-mark-bad"]];

function h(tag, props, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}

class Page {
  constructor(model, el) {
    Object.assign(this, { model, el, at: 0, drawn: "" });
    // Else a letter on a button is a command of the notebook.
    el.setAttribute("data-lm-suppress-shortcuts", "true");
    el.classList.add("nbext-results");
    const heads = HEADS.map((name, at) => h("span", { role: "columnheader", title: name, class: at === 3 ? "nbext-number" : null }, name));
    this.rows = h("div", { role: "rowgroup", class: "nbext-rows" });
    this.grid = h("div", { role: "grid", "aria-label": "Results", "aria-colcount": HEADS.length, class: "nbext-grid", onkeydown: (event) => this.key(event) },
      h("div", { role: "rowgroup" }, h("div", { role: "row", "aria-rowindex": 1, class: "nbext-line nbext-heads" }, ...heads)), this.rows);
    // Never disabled: a button that is loses the focus to the page's body.
    this.back = h("button", { type: "button", onclick: () => this.turn(this.back, "back") }, "Previous");
    this.on = h("button", { type: "button", onclick: () => this.turn(this.on, "next") }, "Next");
    this.number = h("input", { type: "text", inputmode: "numeric", "aria-label": "Page", onchange: () => this.toPage(), onkeydown: (event) => { if (event.key === "Enter") this.toPage(); } });
    this.pages = h("span");
    this.pager = h("div", { class: "nbext-pager" }, this.back, this.number, this.pages, this.on);
    el.append(this.grid);
    this.draw();
    model.on("change:view", () => this.draw());
  }

  turn(button, op) {
    if (button.getAttribute("aria-disabled") !== "true") this.model.send({ op });
  }

  toPage() {
    const page = /^\s*\d{1,9}\s*$/.test(this.number.value) ? Number(this.number.value) : 0;
    if (page > 0 && !this.model.get("view").older) this.model.send({ op: "page", page });
    else this.number.value = String(this.model.get("view").page);
  }

  draw() {
    const view = this.model.get("view");
    const { rows, start, total, page, pages, more, older, picked } = view;
    this.grid.hidden = !rows.length;
    const turns = more || start > 0;
    if (turns !== (this.pager.parentNode !== null)) turns ? this.grid.after(this.pager) : this.pager.remove();
    this.grid.setAttribute("aria-rowcount", total === null ? -1 : total + 1);
    const made = JSON.stringify([start, rows]);
    if (made !== this.drawn) {
      this.drawn = made;
      const focused = this.rows.contains(document.activeElement);
      this.at = 0;
      this.buttons = rows.map((cells, at) => this.button(cells[0], at));
      this.rows.replaceChildren(...rows.map((cells, at) => this.row(cells, at, start)));
      this.rows.scrollTop = 0;
      if (focused && rows.length) this.buttons[0].focus();
    }
    this.grid.classList.toggle("nbext-older", older);
    this.buttons.forEach((button, at) => {
      button.setAttribute("aria-disabled", String(older));
      button.tabIndex = at === this.at ? 0 : -1;
      this.rows.children[at].classList.toggle("nbext-picked", at === picked);
      this.rows.children[at].setAttribute("aria-selected", String(at === picked));
    });
    this.back.setAttribute("aria-disabled", String(older || start === 0));
    this.on.setAttribute("aria-disabled", String(older || !more));
    this.number.readOnly = older;
    this.number.value = String(page);
    this.pages.textContent = pages === null ? "" : `of ${pages.toLocaleString("en")}`;
  }

  button(name, at) {
    return h("button", { type: "button", class: "nbext-name", title: `Show the metadata of ${name}`, onfocus: () => this.stand(at),
      onclick: () => { if (!this.model.get("view").older) this.model.send({ op: "pick", at }); } }, name);
  }

  row([, symbol, standard, owners, ...marks], at, start) {
    const cell = (said, kind) => h("span", { role: "gridcell", title: said || null, class: kind }, said);
    const shown = MARKS.filter((_, place) => marks[place]);
    return h("div", { role: "row", "aria-rowindex": start + at + 2, class: "nbext-line" },
      h("span", { role: "gridcell" }, this.buttons[at]), cell(symbol), cell(standard), cell(owners, "nbext-number"),
      h("span", { role: "gridcell", title: shown.map(([said]) => said).join(", ") || null }, ...shown.map(([said, kind]) => h("span", { class: kind }, said))));
  }

  stand(at) {
    this.at = at;
    this.buttons.forEach((button, place) => { button.tabIndex = place === at ? 0 : -1; });
  }

  key(event) {
    const last = this.buttons.length - 1;
    const to = { ArrowDown: Math.min(this.at + 1, last), ArrowUp: Math.max(this.at - 1, 0), Home: 0, End: last }[event.key];
    if (to !== undefined) this.buttons[to].focus();
    else if (event.key === "PageDown") this.turn(this.on, "next");
    else if (event.key === "PageUp") this.turn(this.back, "back");
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

export default {
  render({ model, el }) {
    new Page(model, el);
  },
};
