// @ts-check
// A table over a source: the rows and columns in sight are drawn, in one scroll. Search, two bounds of the active column,
// actions, and the grid, in which arrows move, are its five stops of the Tab key.
import { ARROWS, active, around, copied, fill, h, press, put, stopAt, text, walk } from "./dom.js";
import { grows, histogram } from "./histogram.js";
import { count, grouped, shareText, sixDigits } from "./numbers.js";

/** @typedef {import("./source.js").Source} Source */
/** @typedef {import("./source.js").Bounds} Bounds */
/** @typedef {{ at: number, width: number, left: number, el: HTMLElement, bars: HTMLElement, arrow: HTMLElement, turn: number, summary?: import("./source.js").Summary }} Head */

const HEIGHT = 26;
const TALLEST = 8_000_000; // px: browsers draw no element that is much taller
const NEAR = 100;
const WIDTHS = { number: 140, address: 172, text: 170, time: 178, flag: 90 };
const PAUSE = 250; // ms without a key before what is typed is asked

/** @param {string} exact @param {import("./source.js").Column} column */
function numberText(exact, { share, id }) {
  const number = Number(exact);
  if (Number.isNaN(number)) return exact; // inf, as Python writes it
  if (share) return shareText(number);
  const said = /^-?\d+$/.test(exact) ? grouped(exact) : sixDigits(number);
  return id ? said.replaceAll(",", "") : said;
}

/** Where a cell is: the Tab key stops at one of them. @param {number} at @param {number} row */
const spotted = (at, row) => ({ tabindex: -1, "data-at": at, "data-row": row });

export class Table {
  shown = /** @type {number[]} */ ([]); // columns, by their places in the source
  pinned = 0;

  /** @param {Source} source @param {HTMLElement[]} [actions]  further buttons of its toolbar @param {import("./source.js").Asked} [asked] */
  constructor(source, actions = [], asked = { order: [], filters: {}, search: "" }) {
    this.source = source;
    this.asked = asked;
    this.waits = false;
    this.found = source.total;
    this.spot = { row: -1, column: 0 };
    this.turn = 0;
    this.first = 0; // the first row that is drawn
    this.drawn = ""; // and all that is, or nothing where it must be drawn anew
    this.near = this.rowsNear(0, 0);
    this.heads = source.columns.map((_, at) => this.head(at));
    this.status = h("span", { role: "status", class: "nbt-where" });
    this.error = h("span", { role: "alert", class: "nbext-error" });
    this.search = this.field("Search names and addresses", () => {
      this.asked.search = this.search.value.trim();
      this.renew();
    });
    this.search.type = "search";
    this.min = this.field("At least", () => this.typed());
    this.max = this.field("At most", () => this.typed());
    this.pin = press("Pin", () => this.toPin());
    this.hide = press("Hide", () => this.toHide());
    this.all = press("All columns", () => this.toAll());
    this.clear = press("Clear filters", () => {
      this.asked.filters = {};
      this.asked.search = this.search.value = "";
      this.renew();
    });
    const tools = { class: "nbext-actions", role: "toolbar", "aria-label": "Table" };
    this.tools = h("div", tools, this.pin, this.hide, this.all, this.clear, ...actions);
    this.tools.addEventListener("keydown", (event) => walk(event, this.buttons));
    this.about = h("span");
    this.copied = h("span", { role: "status" });
    this.body = h("div", { class: "nbt-body", role: "rowgroup" });
    this.line = h("div", { class: "nbt-line nbt-heads", role: "row", "aria-rowindex": 1 });
    const top = h("div", { class: "nbt-top", role: "rowgroup" }, this.line);
    this.canvas = h("div", { class: "nbt-canvas", role: "none" }, top, this.body);
    const grid = { role: "grid", "aria-label": "Rows", "aria-multiselectable": "false" };
    this.grid = h("div", { ...grid, class: "nbt-scroll mathjax_ignore tex2jax_ignore" }, this.canvas);
    this.grid.onscroll = () => this.draw();
    this.grid.onkeydown = (event) => this.key(event);
    this.grid.onclick = (event) => this.click(event);
    // Of three rows there is no empty box below: so much are the headings, the edges and a scroll bar.
    this.grid.style.maxHeight = `${Math.max(1, source.total) * HEIGHT + 94}px`;
    const filters = h("div", "nbext-actions", this.status, this.search, this.min, this.max, this.error);
    const about = h("div", "nbext-note nbt-about", this.about, " ", this.copied);
    this.el = h("div", "nbt", filters, this.tools, about, this.grid);
    this.seen = new ResizeObserver(() => this.draw());
    this.seen.observe(this.grid);
    this.el.inert = !source.columns.length; // no cell for a key to move to
    this.toAll();
    this.renew();
  }

  end() {
    this.seen.disconnect();
  }

  /** @param {string} label @param {() => void} act */
  field(label, act) {
    let timer = 0;
    // Also where it is left: what was typed for a column is not for that which is chosen next.
    const now = () => {
      if (timer) act();
      clearTimeout(timer);
      timer = 0;
    };
    const props = { "aria-label": label, placeholder: label.toLowerCase() };
    const input = h("input", { ...props, type: "text", class: "nbt-field" });
    input.oninput = () => {
      clearTimeout(timer);
      timer = window.setTimeout(now, PAUSE);
    };
    input.onblur = now;
    input.onkeydown = ({ key }) => {
      if (key === "Enter") now();
    };
    return input;
  }

  /** @param {number} at @returns {Head} */
  head(at) {
    const { name, kind, unit } = this.source.columns[at];
    const arrow = h("span", { "aria-hidden": "true", class: "nbt-arrow" });
    const bars = h("div", "nbt-summary");
    const grip = h("span", { class: "nbt-grip", "aria-hidden": "true" });
    grip.onpointerdown = ({ pointerId }) => grip.setPointerCapture(pointerId);
    grip.onpointermove = ({ pointerId, clientX }) => {
      if (grip.hasPointerCapture(pointerId))
        this.resize(this.heads[at], clientX - el.getBoundingClientRect().left);
    };
    grip.onclick = (event) => event.stopPropagation();
    const title = `${name}: press to sort, with Shift by several; Alt and arrows resize`;
    const props = { role: "columnheader", class: `nbt-cell nbt-head nbt-${kind}`, title };
    const words = h("div", "nbt-name", h("b", null, name), unit && ` ${unit}`, arrow);
    const el = h("div", { ...props, ...spotted(at, -1) }, words, bars, grip);
    const width = Math.max(WIDTHS[kind], Math.min(280, 8 * (name.length + (unit ?? "").length) + 46));
    return { at, width, left: 0, el, bars, arrow, turn: 0 };
  }

  /** After columns were hidden, pinned or resized. */
  layout() {
    let left = 0;
    for (const at of this.shown) {
      Object.assign(this.heads[at], { left });
      left += this.heads[at].width;
    }
    this.canvas.style.width = `${left}px`;
    put(this.grid, "aria-colcount", this.shown.length);
    this.spot.column = Math.min(this.spot.column, this.shown.length - 1);
    this.all.disabled = this.shown.length === this.source.columns.length && !this.pinned;
    this.drawn = "";
    this.draw();
    this.mark(false);
  }

  /** After another order or filter: rows and summaries anew. */
  async renew() {
    const turn = ++this.turn;
    this.waits = true;
    this.el.classList.add("nbext-old-rows");
    const found = await this.source.ask(this.asked);
    if (turn === this.turn) this.show(found);
  }

  /** @param {import("./source.js").Found} found */
  show({ count: found, errors }) {
    this.waits = false;
    this.el.classList.remove("nbext-old-rows");
    this.found = found;
    if (active(this.search) !== this.search) this.search.value = this.asked.search;
    this.near = this.rowsNear(0, 0);
    const of = found === this.source.total ? "" : ` of ${count(this.source.total)}`;
    text(this.status, `${count(found)}${of} row${this.source.total === 1 ? "" : "s"}`);
    put(this.grid, "aria-rowcount", found + 1);
    const { columns } = this.source;
    const wrong = Object.entries(errors).map(([at, said]) => `${columns[Number(at)].name}: ${said}`);
    text(this.error, wrong.join(" "));
    text(this.copied, "");
    this.clear.disabled = !Object.keys(this.asked.filters).length && !this.asked.search;
    for (const head of this.heads) {
      const { order } = this.asked;
      const place = order.findIndex(([at]) => at === head.at);
      const way = order[place]?.[1] ?? "none";
      put(head.el, "aria-sort", way);
      const arrow = { none: "", ascending: " ▲", descending: " ▼" }[way];
      text(head.arrow, `${arrow}${arrow && order.length > 1 ? place + 1 : ""}`);
      head.el.classList.toggle("nbt-filtered", String(head.at) in this.asked.filters);
      delete head.summary;
    }
    this.body.style.height = `${this.height}px`;
    this.body.classList.toggle("nbt-empty", !found);
    this.drawn = "";
    this.draw();
    this.mark(false);
  }

  /** Sums up the columns in sight, one after the other: of hundreds most are never seen. @param {number[]} inSight */
  async sumUp(inSight) {
    const turn = this.turn;
    for (const at of inSight) {
      const head = this.heads[at];
      if (head.turn === turn) continue;
      head.turn = turn;
      const made = await this.source.summary(at);
      if (turn !== this.turn) return;
      this.drawSummary(head, made);
    }
  }

  /** @param {Head} head @param {import("./source.js").Summary} made */
  drawSummary(head, made) {
    const { at } = head;
    head.summary = made;
    const filter = (/** @type {Bounds} */ bounds) => {
      this.asked.filters[at] = bounds;
      this.choose(at);
      this.renew();
    };
    const held = this.asked.filters[at] ?? {};
    const distinct = made.distinct === undefined ? "" : `${count(made.distinct)} distinct`;
    const { bars } = made;
    head.bars.replaceChildren(bars.length ? histogram(bars, held, filter) : h("small", null, distinct));
    if (this.shown[this.spot.column] === at) this.tell();
  }

  get rows() {
    return Math.ceil((this.grid.clientHeight || 400) / HEIGHT) + 1;
  }

  get height() {
    return Math.min(TALLEST, this.found * HEIGHT);
  }

  /** How far one scrolls for a row: less than its height where all of them would be too tall. */
  get step() {
    const { height, found } = this;
    if (height === found * HEIGHT) return HEIGHT;
    return (height + this.line.offsetHeight - this.grid.clientHeight) / (found - this.rows + 3);
  }

  /** The rows and columns in sight. */
  async draw() {
    const { scrollTop, scrollLeft, clientWidth } = this.grid;
    const rows = this.rows;
    const first = Math.min(Math.max(0, this.found - rows + 3), Math.floor(scrollTop / this.step));
    const inSight = this.shown.filter((at, place) => {
      const { left, width } = this.heads[at];
      return place < this.pinned || (left + width > scrollLeft && left < scrollLeft + (clientWidth || 900));
    });
    const key = `${first}/${inSight}/${rows}`;
    if (key === this.drawn) return;
    Object.assign(this, { first, drawn: key });
    this.fill(this.line, inSight, (at) => this.heads[at].el);
    this.sumUp(inSight);
    const turn = this.turn;
    const wanted = await this.fetch(first, Math.min(this.found, first + rows));
    if (turn !== this.turn || this.drawn !== key) return;
    const top = Math.min(first * this.step, this.height - wanted.length * HEIGHT);
    const focused = this.grid.contains(active(this.grid));
    this.body.replaceChildren(
      ...wanted.map((row, i) => {
        const line = h("div", { class: "nbt-line", role: "row", "aria-rowindex": first + i + 2 });
        line.style.top = `${top + i * HEIGHT}px`;
        this.fill(line, inSight, (at) => this.cell(at, first + i, row[at]));
        return line;
      }),
    );
    this.mark(focused);
  }

  /** @param {HTMLElement} line @param {number[]} columns @param {(at: number) => HTMLElement} made */
  fill(line, columns, made) {
    const cells = columns.map((at) => {
      const cell = made(at);
      const { left, width } = this.heads[at];
      const place = this.shown.indexOf(at);
      cell.classList.toggle("nbt-pinned", place < this.pinned);
      cell.style.width = `${width}px`;
      cell.style.left = `${left}px`;
      put(cell, "aria-colindex", place + 1);
      return cell;
    });
    fill(line, cells);
  }

  /** Asks for some rows and for those near them: a short way to scroll asks for none. @param {number} from @param {number} to */
  rowsNear(from, to) {
    const [first, end] = [Math.max(0, from - NEAR), Math.min(this.found, to + NEAR)];
    return { first, end, rows: this.source.rows(first, end) };
  }

  /** @param {number} from @param {number} to */
  async fetch(from, to) {
    if (from < this.near.first || to > this.near.end) this.near = this.rowsNear(from, to);
    const { first, rows } = this.near;
    return (await rows).slice(from - first, to - first);
  }

  /** @param {number} at @param {number} row @param {string | null} exact */
  cell(at, row, exact) {
    const column = this.source.columns[at];
    const { kind, id } = column;
    let said = exact ?? "missing";
    if (kind === "address" && said.length > 20) said = `${said.slice(0, 10)}…${said.slice(-8)}`;
    else if (exact !== null && kind === "number") said = numberText(exact, column);
    else if (exact !== null && kind === "time") said = exact.replace("T", " ");
    else if (kind === "text") said = said.slice(0, 200); // no cell is as wide
    const props = {
      class: `nbt-cell nbt-${kind}${exact === null ? " nbt-none" : ""}`,
      title: exact && kind === "number" && !id ? grouped(exact) : exact,
      "data-exact": exact ?? "",
    };
    return h("div", { role: "gridcell", ...spotted(at, row), ...props }, said);
  }

  /** Says what is known of the active column, and has its bounds in the fields. */
  tell() {
    const at = this.shown[this.spot.column];
    if (at === undefined) return;
    const { name, kind, unit, id } = this.source.columns[at];
    const { bars = [], missing, distinct, min, max, sum } = this.heads[at].summary ?? {};
    const said = [unit ? `${name} (${unit})` : name];
    const plain = (/** @type {string} */ exact) =>
      kind === "number" && !id ? exact.replace(/-?\d+(\.\d+)?/, grouped) : exact.replace("T", " ");
    for (const [key, one] of Object.entries({ min, max, sum })) if (one) said.push(`${key} ${plain(one)}`);
    for (const [key, one] of Object.entries({ distinct, missing }))
      if (one) said.push(`${key} ${count(one)}`);
    if (kind === "number" && grows(bars)) said.push("each bar is wider than the one before");
    text(this.about, said.join(" · "));
    const bounded = kind === "number" || kind === "time";
    const held = this.asked.filters[at] ?? {};
    const words = kind === "time" ? ["From", "To"] : bounded ? ["At least", "At most"] : ["Contains", ""];
    [this.min, this.max].forEach((field, i) => {
      put(field, "aria-label", `${words[i]}: ${name}`);
      put(field, "placeholder", `${words[i].toLowerCase()} · ${name}`);
      if (active(field) !== field) field.value = (i ? held.max : (held.min ?? held.text)) ?? "";
    });
    this.max.hidden = !bounded;
    this.pin.textContent = this.spot.column < this.pinned ? "Unpin" : "Pin";
    this.pin.title = `Keep ${name} in sight`;
    this.hide.title = `Hide ${name}`;
    this.hide.disabled = this.shown.length < 2;
    // All that is switched off and on was: the Tab key stops at no button that is off.
    stopAt(this.buttons);
  }

  get buttons() {
    return [...this.tools.querySelectorAll("button:enabled")];
  }

  typed() {
    const at = this.shown[this.spot.column];
    const [low, high] = [this.min.value.trim(), this.max.value.trim()];
    const bounds = { ...(low && { min: low }), ...(high && { max: high }) };
    const bounded = !this.max.hidden; // of a text there is one field
    if (low || (bounded && high)) this.asked.filters[at] = bounded ? bounds : { text: low };
    else delete this.asked.filters[at];
    this.renew();
  }

  /** @param {number} at */
  choose(at) {
    this.spot.column = Math.max(0, this.shown.indexOf(at));
    this.mark(false);
  }

  /** All columns, in their order. */
  toAll() {
    this.shown = this.source.columns.map((_, at) => at);
    this.pinned = 0;
    this.layout();
  }

  toPin() {
    const at = this.shown[this.spot.column];
    const was = this.spot.column < this.pinned;
    this.shown.splice(this.spot.column, 1);
    this.pinned += was ? -1 : 1;
    this.shown.splice(was ? this.pinned : this.pinned - 1, 0, at);
    this.spot.column = this.shown.indexOf(at);
    this.layout();
  }

  toHide() {
    if (this.spot.column < this.pinned) this.pinned--;
    this.shown.splice(this.spot.column, 1);
    this.layout();
  }

  /** @param {Head} head @param {number} width */
  resize(head, width) {
    head.width = Math.max(60, Math.min(900, Math.round(width)));
    this.layout();
  }

  /** @param {number} at @param {boolean} more  by this column, too */
  sort(at, more) {
    const order = new Map(this.asked.order);
    // The first press shows what is looked for most: the largest, or the first by name. The third ends it.
    const ways = /** @type {("ascending" | "descending" | undefined)[]} */ (["ascending", "descending"]);
    if (this.source.columns[at].kind === "number") ways.reverse();
    const next = ways[ways.indexOf(order.get(at)) + 1];
    if (!more) order.clear();
    if (next) order.set(at, next);
    else order.delete(at);
    this.asked.order = [...order];
    this.renew();
  }

  /** The one cell that the Tab key stops at. @param {boolean} focus */
  mark(focus) {
    for (const one of this.grid.querySelectorAll('[tabindex="0"]')) put(one, "tabindex", -1);
    const { row, column } = this.spot;
    const first = /** @type {HTMLElement | null} */ (this.line.firstElementChild);
    const cell = this.drawnCell(row, this.shown[column]) ?? first;
    put(cell ?? this.grid, "tabindex", 0);
    if (focus) cell?.focus({ preventScroll: true });
    this.tell();
  }

  /** @param {number} row @param {number} at @returns {HTMLElement | null} */
  drawnCell(row, at) {
    return this.grid.querySelector(`[data-row="${row}"][data-at="${at}"]`);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { spot } = this;
    const at = this.shown[spot.column];
    const page = this.rows - 3;
    /** @type {Record<string, number[]>} */
    const moves = { ...ARROWS, PageDown: [0, page], PageUp: [0, -page], Home: [-1e6, 0], End: [1e6, 0] };
    const move = moves[event.key];
    if (event.altKey && move?.[0]) this.resize(this.heads[at], this.heads[at].width + 20 * move[0]);
    else if (move) {
      spot.row = Math.max(-1, Math.min(this.found - 1, spot.row + move[1]));
      spot.column = Math.max(0, Math.min(this.shown.length - 1, spot.column + move[0]));
      this.reveal();
    } else if (event.key === "Enter" || event.key === " ") this.act(spot.row, at, event.shiftKey);
    else if (event.key === "/") this.search.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  async reveal() {
    const { row, column } = this.spot;
    const { left, width } = this.heads[this.shown[column]];
    const kept = this.shown.slice(0, this.pinned).reduce((sum, at) => sum + this.heads[at].width, 0);
    if (column >= this.pinned) {
      if (left < this.grid.scrollLeft + kept) this.grid.scrollLeft = left - kept;
      else if (left + width > this.grid.scrollLeft + this.grid.clientWidth)
        this.grid.scrollLeft = left + width - this.grid.clientWidth;
    }
    const shown = this.rows - 4;
    const { first } = this;
    const wanted = row < 0 ? first : row < first + 1 ? row : row > first + shown ? row - shown : first;
    if (wanted !== first) this.grid.scrollTop = wanted * this.step;
    await this.draw();
    this.mark(true);
  }

  /** @param {MouseEvent} event */
  click(event) {
    const cell = around(event, "[data-at]");
    if (!cell) return;
    this.spot = { row: Number(cell.dataset.row), column: this.shown.indexOf(Number(cell.dataset.at)) };
    this.mark(true);
    this.act(this.spot.row, Number(cell.dataset.at), event.shiftKey);
  }

  /** @param {number} row @param {number} at @param {boolean} shift */
  async act(row, at, shift) {
    if (row < 0) this.sort(at, shift);
    else {
      const exact = this.drawnCell(row, at)?.dataset.exact;
      if (exact)
        text(this.copied, (await copied(exact)) ? `Copied ${exact}` : `This page may not copy: ${exact}`);
    }
  }
}

/** The table of a form, whose rows are in the kernel. */
export class LinkedTable extends Table {
  /** @param {import("./link.js").Link} link @param {number} id @param {any} shown */
  constructor(link, id, { columns, total, found }) {
    /** @type {Source} */
    const source = {
      columns,
      total,
      ask: (question) => link.ask(id, "ask", question),
      rows: (start, end) => link.ask(id, "rows", { start, end }).then(({ rows }) => rows),
      summary: (at) => link.ask(id, "summary", { at }).then(({ summary }) => summary),
    };
    super(source, [], found?.asked);
  }

  /** What another view asked, unless this one asked something later. @param {any} changes */
  update({ found }) {
    if (this.waits || !found) return;
    this.asked = found.asked;
    this.turn++;
    this.show(found);
  }
}
