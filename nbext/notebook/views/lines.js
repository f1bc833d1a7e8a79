// @ts-check
// Draws a segment's conditions, one below the other. Python holds the query: what is done here is sent as a message.
import { Beside } from "./beside.js";
import { active, fill, h, press, put, text } from "./dom.js";
import { Field, Line } from "./line.js";
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
    /** @type {Map<number, Line | Group>} */
    this.parts = new Map();
    this.listening = new AbortController();
    this.pressed = false;
    this.entered = false;
    this.unfolded = false;
    /** @type {HTMLElement | null} */
    this.gone = null;
    /** @type {any} */
    this.goneFor = null;
    this.undo = press("Undo", () => this.send("undo"));
    this.redo = press("Redo", () => this.send("redo"));
    this.options = press("Options", () => {
      this.unfolded = !this.unfolded;
      this.draw();
    });
    this.scopeFields = shown.spec.scope.map(
      (/** @type {import("./line.js").Spec} */ spec) => new Field(this, 0, spec),
    );
    this.scope = h(
      "fieldset",
      { class: "nbl-editor" },
      h("legend", { class: "nbext-unseen" }, "Options of the whole segment"),
      h("div", { class: "nbl-fields" }, ...this.scopeFields.map((/** @type {Field} */ one) => one.el)),
    );
    this.list = h("div");
    this.beside = new Beside(this, shown.members.map(make));
    this.el = h(
      "div",
      { class: "nbl", onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
      h(
        "div",
        { class: "nbl-main" },
        h("div", { class: "nbext-actions" }, this.undo, this.redo, this.options),
        this.scope,
        this.list,
      ),
      this.beside.el,
    );
    this.top = /** @type {Group} */ (this.part(shown.tree.root, new Set()));
    this.listen();
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

  listen() {
    const { signal } = this.listening;
    // A line or a list that closes under the pointer would move what is clicked away from it.
    const down = () => {
      this.pressed = true;
    };
    const up = () =>
      setTimeout(() => {
        this.pressed = false;
        this.leave();
      }, 0);
    document.addEventListener("pointerdown", down, { capture: true, signal });
    document.addEventListener("pointerup", up, { signal });
    document.addEventListener("focusin", () => this.leave(), { signal });
  }

  end() {
    this.beside.end();
    this.listening.abort();
  }

  // Closes the lines that the focus has left.
  leave() {
    const at = active(this.el);
    if (!at || at === document.body || !this.entered || this.pressed) return;
    const { opened } = this.shown;
    const open = opened.filter((/** @type {number} */ id) => this.parts.get(id)?.el.contains(at));
    if (open.length !== opened.length) this.open(open);
  }

  /** @param {number[]} ids */
  open(ids) {
    this.entered = ids.length > 0;
    this.shown.opened = ids;
    this.send("open", { ids });
    this.draw();
  }

  /** @param {Message} changes */
  update(changes) {
    Object.assign(this.shown, changes);
    if ("tree" in changes || "opened" in changes) this.draw();
    if ("counted" in changes) {
      this.beside.count(this.shown.counted);
      this.el.classList.toggle("nbl-stale", Boolean(this.shown.counted.stale));
      this.lineCounts();
    }
  }

  /** @param {Message} message */
  told({ to, goto, field, keep }) {
    if (to || this.el.closest(".nbext-form")?.contains(active(this.el))) this.go(goto, field, keep);
  }

  /** @param {number | string} goto @param {string} field @param {boolean} keep */
  go(goto, field, keep) {
    const part = this.parts.get(Number(goto));
    if (goto === "removed") this.gone?.querySelector("button")?.focus();
    else if (part) {
      if (part instanceof Line && !keep && !this.shown.opened.includes(goto)) this.open([Number(goto)]);
      this.entered = true;
      part.focus(keep, field);
    } else this.top.add.input.focus();
  }

  /** @param {string[]} kinds @param {string} term @param {string | null | undefined} chain @param {import("./picker.js").Done} done */
  search(kinds, term, chain, done) {
    this.link.ask(this.id, "search", { kinds, term, chain }).then(/** @type {any} */ (done));
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
    const { tree, opened } = this.shown;
    this.undo.disabled = !tree.undo;
    this.redo.disabled = !tree.redo;
    const shown =
      this.unfolded ||
      opened.includes(0) ||
      Object.keys(tree.scope).length > 0 ||
      tree.scopeErrors.length > 0;
    this.scope.hidden = !shown;
    put(this.options, "aria-expanded", String(shown));
    for (const field of this.scopeFields) {
      if (field.spec.shape === "order") field.offer(tree.orders);
      field.draw(tree.scope[field.spec.name], tree.scopeErrors);
    }
    /** @type {Set<number>} */
    const seen = new Set();
    this.top = /** @type {Group} */ (this.part(tree.root, seen));
    this.top.update(tree.root, seen);
    fill(this.list, [this.top.el]);
    for (const id of this.parts.keys()) if (!seen.has(id)) this.parts.delete(id);
    this.beside.draw(tree);
    this.lineCounts();
  }

  /** @param {any} node @param {Set<number>} seen @returns {Line | Group} */
  part(node, seen) {
    seen.add(node.id);
    const part =
      this.parts.get(node.id) ??
      (node.members ? new Group(this, node.id, node.id === this.shown.tree.root.id) : new Line(this, node));
    this.parts.set(node.id, part);
    return part;
  }

  lineCounts() {
    const { lines = {}, stale } = this.shown.counted;
    for (const [id, part] of this.parts) {
      const said = lines[id] ?? "";
      text(part.counted, said && stale ? `${said} (before)` : said);
      part.counted.title = said ? "Wallets that match this condition; of NOT, those that it takes away" : "";
    }
  }
}

class Group {
  /** @param {Lines} page @param {number} id @param {boolean} top */
  constructor(page, id, top) {
    this.page = page;
    this.id = id;
    this.top = top;
    /** @type {Map<number, HTMLElement>} */
    this.joins = new Map();
    this.legend = h("legend", { class: top ? "nbext-label" : "nbl-legend" });
    this.not = press("NOT", () => page.send("negate", { id }), { class: "nbext-button nbl-not" });
    this.counted = h("span", { class: "nbl-count" });
    const head = h(
      "div",
      { class: "nbext-actions" },
      this.not,
      page.act(id, "Ungroup", "unwrap"),
      ...page.moves(id),
      page.act(id, "Remove", "remove"),
      this.counted,
    );
    this.errors = h("div", { class: "nbext-error", role: "alert" });
    this.members = h("div");
    this.add = new Adder(page, id, top);
    this.el = h(
      "fieldset",
      { class: top ? "nbl-top" : "nbl-group" },
      this.legend,
      !top && head,
      this.errors,
      this.members,
      this.add.el,
    );
  }

  /** @param {any} node @param {Set<number>} seen */
  update(node, seen) {
    text(this.legend, this.top ? "Conditions" : `${node.not ? "NOT: " : ""}${node.label}`);
    put(this.not, "aria-pressed", String(node.not));
    text(this.errors, node.errors.map((/** @type {any} */ one) => one.detail).join(" "));
    const { removed } = this.page.shown.tree;
    /** @type {HTMLElement[]} */
    const rows = [];
    node.members.forEach((/** @type {any} */ member, /** @type {number} */ at) => {
      if (removed?.parent === this.id && removed.place === at) rows.push(this.gone(removed));
      if (at) rows.push(this.join(node, member.id));
      const part = this.page.part(member, seen);
      part.update(member, seen);
      rows.push(part.el);
    });
    if (removed?.parent === this.id && removed.place >= node.members.length) rows.push(this.gone(removed));
    fill(this.members, rows);
  }

  /** @param {any} node @param {number} id */
  join(node, id) {
    const made =
      this.joins.get(id) ??
      h(
        "div",
        { class: "nbl-between" },
        press("", () => this.page.send("join", { id: this.id }), { class: "nbext-button nbl-join" }),
      );
    this.joins.set(id, made);
    const button = /** @type {HTMLElement} */ (made.firstElementChild);
    text(button, JOINS[node.join]);
    button.title = `Change to ${JOINS[node.join === "all" ? "any" : "all"]} between all of these`;
    return made;
  }

  /** Undo is at the left, where a line has its NOT: the second click of a double click on Remove falls beside it. @param {any} removed */
  gone(removed) {
    const { page } = this;
    if (page.goneFor !== removed || !page.gone) {
      page.goneFor = removed;
      page.gone = h(
        "div",
        { class: "nbl-head nbl-removed" },
        press("Undo", () => page.send("undo")),
        h("span", { role: "status", title: removed.words }, `Removed: ${removed.words}`),
      );
    }
    return page.gone;
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
    /** @type {any[]} */
    const asked = Object.values(conditions).flatMap((/** @type {any} */ { fields }) => fields);
    const kinds = ["token", "collection"].filter((kind) =>
      asked.some(({ required, picks }) => required && picks === kind),
    );
    /** @type {[string, any][]} */
    const offers = Object.entries({ ...conditions, ...groups });
    const entries = offers.map(([key, one]) => ({
      key,
      value: "",
      label: one.label ?? one,
      name: one.help ?? "a group",
    }));
    // What was not picked is no part of the query, and must not look like one.
    this.input = h("input", {
      type: "text",
      class: "nbl-add",
      autocomplete: "off",
      spellcheck: "false",
      onblur: () => {
        this.input.value = "";
      },
      "aria-label": top ? "+ Add" : "+ Add to this group",
      placeholder: "+ Add: symbol, condition, saved query",
      title: "Type a token's or a collection's symbol, a condition, or the name of a saved query",
    });
    const box = new Picker(
      this.input,
      (done) => {
        const term = this.input.value.trim();
        const own = entries.filter((one) => one.label.toLowerCase().includes(term.toLowerCase()));
        if (!term) done({ found: own });
        else
          page.search([...kinds, "saved"], term, null, ({ found, error }) =>
            done({ found: [...found, ...own], ...(error ? { error } : {}) }),
          );
      },
      (one) => {
        this.input.value = "";
        page.send("add", {
          into,
          ...(one.kind ? { key: "", kind: one.kind, value: one.value } : { key: one.key }),
        });
      },
      () => page.pressed,
    );
    this.el = h("div", { class: "nbl-adder" }, this.input, box.list);
  }
}
