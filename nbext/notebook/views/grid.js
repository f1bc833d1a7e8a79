// @ts-nocheck
// Draws a page of the table, its filters and summaries. Python holds the table: what is done here is sent as a message.
import { active, copied, count, h, press, text, unique } from "./dom.js";

const TYPING = 350; // ms without a key before a filter is sent
const NONE = "missing";

export class Grid {
  constructor(link, id, shown) {
    this.el = h("div", { class: "nbx" });
    Object.assign(this, { link, id, shown, columns: shown.columns, late: new Set(), prefix: unique("nbx") });
    this.build();
    this.update(shown);
  }

  send(op, more) {
    this.link.send(this.id, op, more);
  }

  update(changes) {
    Object.assign(this.shown, changes);
    if ("view" in changes) this.draw();
    if ("summaries" in changes) this.sumUp();
  }

  build() {
    this.where = h("span", { role: "status", class: "nbx-where" });
    this.copied = h("span", { role: "status", class: "nbext-note" });
    this.number = h("input", { type: "text", inputmode: "numeric", "aria-label": "Page", class: "nbx-page", onchange: () => this.turn(parseInt(this.number.value, 10) - 1 || 0) });
    this.pages = h("span", null);
    this.size = h("select", { "aria-label": "Rows on a page", onchange: () => this.send("page", { page: 0, size: Number(this.size.value) }) },
      ...[25, 50, 100].map((one) => h("option", { value: one }, `${one} rows`)));
    this.back = press("Previous", () => this.turn(this.page - 1));
    this.on = press("Next", () => this.turn(this.page + 1));
    this.last = press("Last", () => this.turn(this.most));
    this.first = press("First", () => this.turn(0));
    this.segment = press("As a segment", () => this.send("segment"), { title: "Write the filters as conditions of a segment" });
    this.clear = press("Clear filters", () => {
      for (const { inputs } of this.heads) for (const one of Object.values(inputs)) one.value = "";
      for (const at of this.columns.keys()) this.sendFilter(at);
    });
    this.heads = this.columns.map((column, at) => this.head(column, at));
    const row = (cells, name) => h("tr", null, h("td", { class: "nbx-row" }, name), ...cells);
    this.body = h("tbody");
    const table = h("table", { class: "nbx-table mathjax_ignore tex2jax_ignore" }, h("caption", { class: "nbext-unseen" }, "The table's rows"),
      h("thead", null, h("tr", null, h("th", { scope: "col", class: "nbx-row" }, "Row"), ...this.heads.map((one) => one.el)),
        row(this.heads.map((one) => one.sums), ""), row(this.heads.map((one) => one.filter), "")), this.body);
    this.cell = h("pre", { class: "nbext-code", tabindex: "0", role: "group", "aria-label": "Code" });
    this.note = h("div", { class: "nbext-note" });
    this.asSegment = h("div", { hidden: true }, this.note, this.cell, press("Copy cell", () => this.copy(this.cell.textContent)));
    this.el.append(h("div", { class: "nbext-actions" }, this.where, this.clear, this.segment, this.copied), this.asSegment,
      h("div", { class: "nbx-scroll", tabindex: "0", role: "region", "aria-label": "Table" }, table),
      h("div", { class: "nbext-actions" }, this.first, this.back, this.number, this.pages, this.on, this.last, this.size));
  }

  head(column, at) {
    const { name, kind, unit } = column;
    const sort = press(unit ? `${name} (${unit})` : name, () => this.send("sort", { at }), { class: "nbx-sort", title: `Sort by ${name}` });
    const arrow = h("span", { "aria-hidden": "true", class: "nbx-arrow" });
    sort.append(arrow);
    const typed = () => { this.late.add(at); this.link.later(`${this.id} ${at}`, () => this.sendFilter(at), TYPING); };
    const field = (said, shown) => h("input", { type: "text", class: "nbx-filter", placeholder: shown, "aria-label": `${said}: ${name}`, oninput: typed,
      onkeydown: (event) => { if (event.key === "Enter") this.link.flush(); } });
    const inputs = {};
    if (kind === "flag") {
      inputs.text = h("select", { "aria-label": `Filter: ${name}`, onchange: () => this.sendFilter(at) },
        ...[["", "any"], ["true", "true"], ["false", "false"]].map(([value, said]) => h("option", { value }, said)));
    } else if (kind === "number" || kind === "time") {
      inputs.min = field(kind === "time" ? "From" : "At least", kind === "time" ? "from" : "min");
      inputs.max = field(kind === "time" ? "To" : "At most", kind === "time" ? "to" : "max");
    } else inputs.text = field("Contains", "contains");
    const error = h("div", { class: "nbext-error", role: "alert", id: `${this.prefix}-${at}` });
    const side = kind === "number" ? "nbext-number" : null;
    return { sort, arrow, inputs, error, el: h("th", { scope: "col", class: side }, sort), sums: h("td", { class: "nbx-sums" }),
      filter: h("td", null, h("div", { class: "nbx-filters" }, ...Object.values(inputs)), error) };
  }

  sendFilter(at) {
    this.late.delete(at);
    const value = Object.fromEntries(Object.entries(this.heads[at].inputs).map(([key, one]) => [key, one.value]));
    this.send("filter", { at, value });
  }

  turn(page) {
    this.send("page", { page });
  }

  async copy(what) {
    text(this.copied, (await copied(what)) ? `Copied ${what.length > 42 ? "the cell" : what}.` : `This page may not copy: ${what}`);
  }

  draw() {
    const { rows, total, matched, start, size, sort, filters, errors, segment } = this.shown.view;
    this.page = Math.floor(start / size);
    this.most = Math.max(0, Math.ceil(matched / size) - 1);
    const of = matched === total ? "" : ` that match, of ${count(total)}`;
    text(this.where, matched ? `Rows ${count(start + 1)} to ${count(start + rows.length)} of ${count(matched)}${of}` : `No row of ${count(total)} matches.`);
    if (active(this.el) !== this.number) this.number.value = String(this.page + 1);
    text(this.pages, `of ${count(this.most + 1)}`);
    this.size.value = String(size);
    this.first.disabled = this.back.disabled = this.page === 0;
    this.on.disabled = this.last.disabled = this.page >= this.most;
    this.clear.disabled = this.segment.disabled = Object.keys(filters).length === 0;
    this.heads.forEach((head, at) => {
      const order = sort[0] === at ? sort[1] : "none";
      head.el.setAttribute("aria-sort", order);
      text(head.arrow, { ascending: " ▲", descending: " ▼", none: " ⇅" }[order]);
      const wrong = errors[at] || "";
      text(head.error, wrong);
      for (const [key, input] of Object.entries(head.inputs)) {
        input.setAttribute("aria-invalid", String(wrong !== ""));
        if (wrong) input.setAttribute("aria-describedby", head.error.id);
        const said = filters[at]?.[key] || "";
        if (active(this.el) !== input && !this.late.has(at) && input.value !== said) input.value = said;
      }
    });
    // The digits after the point of a page's amounts get equal room, so that the points are below one another.
    const after = (one) => (one?.includes(".") ? one.length - one.indexOf(".") : 0);
    const widths = this.columns.map((column, at) => (column.kind === "number" ? Math.max(0, ...rows.map((row) => after(row[at + 1]))) : 0));
    this.body.replaceChildren(...rows.map((row) => h("tr", null, h("td", { class: "nbx-row" }, count(row[0])),
      ...this.columns.map((column, at) => this.value(column, row[at + 1], widths[at])))));
    this.asSegment.hidden = !("cell" in segment);
    text(this.note, segment.note || "");
    text(this.cell, segment.cell || "");
    this.cell.hidden = this.cell.nextSibling.hidden = !segment.cell;
  }

  value({ kind }, said, width) {
    if (said === null) return h("td", { class: "nbx-none" }, NONE);
    if (kind === "address") {
      const short = said.length > 20 ? `${said.slice(0, 10)}…${said.slice(-8)}` : said;
      return h("td", null, press(short, () => this.copy(said), { class: "nbx-copy", title: `${said}: press to copy` }));
    }
    if (kind !== "number") return h("td", { title: said }, said);
    const point = said.indexOf(".");
    const [whole, part] = point < 0 ? [said, ""] : [said.slice(0, point), said.slice(point)];
    return h("td", { class: "nbext-number", title: said }, whole, width ? h("span", { class: "nbx-part", style: `min-width: ${width}ch` }, part) : null);
  }

  sumUp() {
    const summaries = this.shown.summaries;
    this.el.classList.toggle("nbx-stale", Boolean(summaries.stale));
    this.heads.forEach(({ sums }, at) => {
      const made = summaries[at];
      if (!made) { text(sums, summaries.stale ? "…" : ""); return; }
      const most = Math.max(1, ...made.bars.map(([, number]) => number));
      const spoken = made.bars.map(([name, number]) => `${name}: ${count(number)}`).join("; ");
      const bars = h("div", { class: "nbx-bars", role: "img", "aria-label": spoken }, ...made.bars.map(([name, number]) =>
        h("span", { title: `${name}: ${count(number)}`, style: `height: ${number ? Math.max(6, (100 * number) / most) : 0}%` })));
      const line = (name, said) => (said === undefined || said === null ? null : h("div", { title: said }, h("span", { class: "nbx-name" }, `${name} `), said));
      sums.replaceChildren(...[made.bars.length ? bars : null, line("distinct", count(made.distinct)), made.missing ? line(NONE, count(made.missing)) : null,
        line("min", made.min), line("max", made.max), line("sum", made.sum)].filter((one) => one !== null));
    });
  }
}
