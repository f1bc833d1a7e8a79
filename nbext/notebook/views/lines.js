// @ts-check
// Draws a segment's conditions, one below the other. Python holds the query: what is done here is sent as a message.
import { active, copied, fill, h, press, text } from "./dom.js";
import { Line, Part } from "./line.js";
import { Picker } from "./picker.js";

/** @typedef {import("./link.js").Message} Message */

/** @type {Record<string, string>} */
const JOINS = { all: "AND", any: "OR" };

export class Lines {
  /** @param {import("./link.js").Link} link @param {number} id @param {Message} shown @param {import("./form.js").Make} make */
  constructor(link, id, shown, make) {
    this.link = link;
    this.id = id;
    this.shown = shown;
    /** @type {Map<number, Line | LineGroup>} */
    this.parts = new Map();
    this.undo = press("Undo", () => this.send("undo"));
    this.redo = press("Redo", () => this.send("redo"));
    this.words = h("span", { role: "status" });
    // Undo is at the left, where a line has its NOT: the second click of a double click on Remove falls beside it.
    const undo = press("Undo", () => this.send("undo"));
    this.gone = h("div", "nbl-head nbl-removed", undo, this.words);
    this.list = h("div");
    // How many wallets match, what Python says of each condition, the JSON, and what inserts the cell.
    const [counting, funnel, sample, json, ...insert] = shown.members.map(
      (/** @type {Message} */ one) => make(one).el,
    );
    const said = h("span", { class: "nbext-note", role: "status" });
    // In sight where the page may not copy.
    this.cell = h("textarea", { hidden: true, readonly: "true", rows: 6, "aria-label": "The cell" });
    const copy = (/** @type {string} */ label, /** @type {HTMLTextAreaElement} */ from) =>
      press(label, async () => {
        if (await copied(from.value)) {
          text(said, from.getAttribute("aria-invalid") ? "Copied, but it is not used." : "Copied.");
          return;
        }
        text(said, "This page may not copy: select the text and copy it.");
        from.hidden = false;
        from.focus();
        from.select();
      });
    const copies = [copy("Copy JSON", json.querySelector("textarea"))];
    if (shown.tree.cell) copies.push(copy("Copy cell", this.cell));
    const actions = h("div", "nbext-actions", ...copies, ...insert, said);
    const main = h("div", "nbl-main", h("div", "nbext-actions", this.undo, this.redo), this.list);
    const beside = h("div", "nbl-beside", counting, funnel, sample, json, actions, this.cell);
    this.el = h("div", "nbl", main, beside);
    this.el.onkeydown = (event) => this.key(event);
    this.update(shown);
  }

  /** @param {string} op @param {Message} [more] */
  send(op, more) {
    this.link.send(this.id, op, more);
  }

  /** A button that asks for an edit of a part. @param {number} id @param {string} label @param {string} op @param {Message} [more] */
  act(id, label, op, more) {
    return press(label, () => this.send(op, { id, ...more }));
  }

  /** What lines and groups have alike. @param {number} id */
  moves(id) {
    return [
      this.act(id, "Duplicate", "duplicate"),
      this.act(id, "Up", "move", { by: -1 }),
      this.act(id, "Down", "move", { by: 1 }),
    ];
  }

  /** @param {number[]} ids */
  open(ids) {
    this.shown.opened = ids;
    this.send("open", { ids });
    this.draw();
  }

  /** @param {Message} changes */
  update(changes) {
    Object.assign(this.shown, changes);
    if ("tree" in changes || "opened" in changes) this.draw();
    if ("counted" in changes) {
      this.el.classList.toggle("nbl-stale", Boolean(this.shown.counted.stale));
      this.lineCounts();
    }
  }

  /** @param {Message} message */
  told({ to, goto, wrong, keep }) {
    if (!to && !this.el.closest(".nbext-form")?.contains(active(this.el))) return;
    const part = this.parts.get(Number(goto));
    if (goto === "removed") this.gone.querySelector("button")?.focus();
    else if (part) {
      if (part instanceof Line && !keep && !this.shown.opened.includes(goto)) this.open([Number(goto)]);
      part.focus(keep, wrong);
    } else {
      const top = /** @type {LineGroup} */ (this.parts.get(this.shown.tree.root.id));
      top.add.input.focus();
    }
  }

  /**
   * Offers what Python finds of these kinds, and below it the entries whose label contains the term.
   * @param {string[]} kinds @param {import("./picker.js").Item[]} entries @param {string} term @param {string | null | undefined} chain @param {import("./picker.js").Done} done @param {() => boolean} wanted
   */
  search(kinds, entries, term, chain, done, wanted) {
    const own = entries.filter((one) => one.label.toLowerCase().includes(term.toLowerCase()));
    if (!kinds.length) done({ found: own });
    else
      this.link.later("search", async () => {
        if (!wanted()) return;
        const { found, error } = await this.link.ask(this.id, "search", { kinds, term, chain });
        done({ found: [...found, ...own], error });
      });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const typing = /** @type {Element} */ (event.target).matches("input, textarea");
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key === "Enter") this.send("run");
    else if (command && !typing && event.key.toLowerCase() === "z")
      this.send(event.shiftKey ? "redo" : "undo");
    else if (command && !typing && event.key.toLowerCase() === "y") this.send("redo");
    else return;
    event.preventDefault();
  }

  draw() {
    const { tree } = this.shown;
    this.undo.disabled = !tree.undo;
    this.redo.disabled = !tree.redo;
    this.words.title = tree.removed?.words ?? "";
    text(this.words, `Removed: ${this.words.title}`);
    this.cell.value = tree.cell;
    /** @type {Set<number>} */
    const seen = new Set();
    fill(this.list, [this.part(tree.scope, seen).el, this.part(tree.root, seen).el]);
    for (const id of this.parts.keys()) if (!seen.has(id)) this.parts.delete(id);
    this.lineCounts();
  }

  /** The part of a node as it is now. @param {any} node @param {Set<number>} seen @returns {Line | LineGroup} */
  part(node, seen) {
    seen.add(node.id);
    const part = this.parts.get(node.id) ?? new (node.members ? LineGroup : Line)(this, node);
    this.parts.set(node.id, part);
    part.update(node, seen);
    return part;
  }

  lineCounts() {
    const { lines = {}, stale } = this.shown.counted;
    for (const [id, part] of this.parts) {
      const said = lines[id] ?? "";
      text(part.counted, said && stale ? `${said} (before)` : said);
      part.counted.title = said ? "Wallets that match this alone; of NOT, those that it leaves out" : "";
    }
  }
}

class LineGroup extends Part {
  /** @param {Lines} page @param {any} node */
  constructor(page, { id }) {
    super(page, id);
    const top = id === page.shown.tree.root.id;
    this.top = top;
    this.legend = h("legend", { class: top ? "nbext-label" : "nbl-legend" });
    const [apart, remove] = [page.act(id, "Ungroup", "unwrap"), page.act(id, "Remove", "remove")];
    const head = h("div", "nbext-actions", this.not, apart, ...page.moves(id), remove, this.counted);
    this.members = h("div");
    this.add = new Adder(page, id, top);
    const inside = [!top && head, this.errors, this.members, this.add.el];
    this.el = h("fieldset", top ? "nbl-top" : "nbl-group", this.legend, ...inside);
  }

  /** @param {any} node @param {Set<number>} seen */
  update(node, seen) {
    text(this.legend, this.top ? "Conditions" : `${node.not ? "NOT: " : ""}${node.label}`);
    this.mark(node);
    const { page, id } = this;
    const other = JOINS[node.join === "all" ? "any" : "all"];
    const rows = node.members.map((/** @type {any} */ member, /** @type {number} */ at) => {
      const part = page.part(member, seen);
      part.around = id;
      text(part.join, JOINS[node.join]);
      part.join.title = `Change to ${other} between all of these`;
      return at ? [part.between, part.el] : [part.el];
    });
    const { removed } = page.shown.tree;
    if (removed?.parent === id) rows.splice(removed.place, 0, [page.gone]);
    fill(this.members, rows.flat());
  }

  /** @param {boolean} [keep] */
  focus(keep) {
    (keep ? this.not : this.add.input).focus();
  }
}

// "+ Add": the conditions and groups, and the contracts that fit what is typed.
class Adder {
  /** @param {Lines} page @param {number} into @param {boolean} top */
  constructor(page, into, top) {
    const { conditions, groups } = page.shown.spec;
    /** @type {Record<string, [string, string]>} the condition that asks for such a contract first of all, and its field */
    const asks = {};
    for (const { name, fields } of Object.values(conditions))
      for (const one of fields)
        if (one.required && ["token", "collection"].includes(one.picks)) asks[one.picks] ??= [name, one.name];
    /** @type {[string, any][]} */
    const offers = Object.entries({ ...conditions, ...groups });
    const entries = offers.map(([key, one]) => {
      return { key, value: "", label: one.label ?? one, name: one.help ?? "a group" };
    });
    const title = "Type a token's or a collection's symbol, a condition, or the name of a saved query";
    const words = { title, placeholder: "+ Add: symbol, condition, saved query" };
    const plain = { type: "text", class: "nbl-add", autocomplete: "off", spellcheck: "false" };
    const label = top ? "+ Add" : "+ Add to this group";
    this.input = h("input", { ...plain, ...words, "aria-label": label });
    // What was not picked is no part of the query, and must not look like one.
    this.input.onblur = () => Object.assign(this.input, { value: "" });
    const box = new Picker(
      this.input,
      (done, wanted) => {
        const term = this.input.value.trim();
        page.search(term ? [...Object.keys(asks), "saved"] : [], entries, term, null, done, wanted);
      },
      ({ key, kind = "", value }) => {
        this.input.value = "";
        const [condition, field] = asks[kind] ?? [key ?? kind];
        page.send("add", { into, key: condition, value: key ? {} : field ? { [field]: value } : value });
      },
    );
    this.el = h("div", "nbl-adder", this.input, box.list);
  }
}
