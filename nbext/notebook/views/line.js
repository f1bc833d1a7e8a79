// @ts-check
// A part of a query, and a line of it: one condition, or the options of all. A line shows words, and where it is edited
// a sentence of its fields. What is empty and not asked for first is folded below "+ more".
import { ARROWS, active, h, press, put, select, text } from "./dom.js";
import { Field } from "./form.js";
import { Picker } from "./picker.js";

/** @typedef {import("./lines.js").Lines} Lines */
/** @typedef {{ field: string, key: string, detail: string }} Wrong */
/** @typedef {{ id: number, not: boolean, errors: Wrong[], key: string, label: string, fields: Record<string, any> | null, words: string }} Node */
/** @typedef {{ name: string, label: string, help: string, shape: string, required: boolean, keys: string[], picks: string, choices: [string, string][], examples: any }} Spec */

const PRESETS = { "7d": "7 days", "30d": "30 days", "90d": "90 days", "180d": "180 days", "365d": "1 year" };
const SIGNS = { min: "at least", max: "at most", both: "between" };

/** What lines and groups have alike. */
export class Part {
  /** @param {Lines} page @param {number} id */
  constructor(page, id) {
    this.page = page;
    this.id = id;
    this.around = 0;
    this.not = press("NOT", () => page.send("negate", { id }), { class: "nbext-button nbl-not" });
    this.counted = h("span", "nbl-count");
    this.errors = h("div", { class: "nbext-error", role: "alert" });
    // How the group around it joins it with what is before it.
    this.join = press("", () => page.send("join", { id: this.around }), { class: "nbext-button nbl-join" });
    this.between = h("div", "nbl-between", this.join);
  }

  /** Says what is wrong with it, but for what its fields say. @param {any} node @param {(string | undefined)[]} [held] */
  mark(node, held = []) {
    put(this.not, "aria-pressed", String(node.not));
    const rest = node.errors.filter((/** @type {Wrong} */ one) => !held.includes(one.field));
    text(this.errors, rest.map((/** @type {Wrong} */ one) => one.detail).join(" "));
  }
}

export class Line extends Part {
  /** @param {Lines} page @param {Node} node */
  constructor(page, { id }) {
    super(page, id);
    /** @type {LineField[]} */
    this.fields = [];
    /** @type {HTMLElement | null} */
    this.editor = null;
    this.asFields = false;
    this.kind = h("span", "nbl-kind");
    this.words = h("span", "nbl-words");
    this.summary = press("", () => this.toggle(), { class: "nbl-summary" });
    this.summary.append(this.kind, this.words);
    const cross = { class: "nbext-button nbl-remove", title: "Remove" };
    this.remove = press("\u00d7", () => page.send("remove", { id }), cross);
    // The options of all conditions are always there.
    this.isOwn = id > 0;
    const inside = this.isOwn ? [this.not, this.summary, this.counted, this.remove] : [this.summary];
    const head = h("div", "nbl-head", ...inside);
    head.onkeydown = (event) => this.key(event);
    this.el = h("div", "nbl-row", head, this.errors);
  }

  toggle() {
    const open = this.page.shown.opened.includes(this.id);
    this.page.open(open ? [] : [this.id]);
    if (!open) this.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = ARROWS[event.key]?.[1];
    if (by && !event.altKey) {
      const all = [...this.page.el.querySelectorAll(".nbl-summary")];
      /** @type {HTMLElement | undefined} */ (all[all.indexOf(this.summary) + by])?.focus();
    } else if (by && this.isOwn) this.page.send("move", { id: this.id, by });
    else if (event.key === "Delete" && this.isOwn) this.page.send("remove", { id: this.id });
    else return;
    event.preventDefault();
  }

  /** @param {any} node */
  update(node) {
    const about = `${node.label} ${node.words}`;
    text(this.kind, node.label);
    text(this.words, node.words || (this.isOwn ? "…" : ""));
    this.summary.title = about;
    put(this.not, "aria-label", `NOT ${about}`);
    put(this.remove, "aria-label", `Remove ${about}`);
    this.el.classList.toggle("nbl-wrong", node.errors.length > 0);
    const open = this.page.shown.opened.includes(this.id);
    put(this.summary, "aria-expanded", String(open));
    // JSON that was typed may have made it one that no field shows, or no longer.
    if (!open || this.asFields !== Boolean(node.fields)) {
      this.editor?.remove();
      this.editor = null;
      this.fields = [];
    }
    if (open && !this.editor) this.build(node);
    for (const field of this.fields) {
      field.chain = node.fields.chain;
      field.draw(node.fields[field.spec.name], node.errors);
    }
    const held = this.fields.map((one) => one.spec.name);
    this.mark(node, held);
  }

  /** @param {Node} node */
  build(node) {
    const { page, id } = this;
    const { conditions, scope } = page.shown.spec;
    const about = this.isOwn ? conditions[node.key] : scope;
    this.asFields = Boolean(node.fields);
    const specs = this.asFields ? about.fields : [];
    this.fields = specs.map((/** @type {Spec} */ spec) => new LineField(page, id, spec));
    const help = node.fields ? about.help : "No form fits this condition: change it in the JSON of all.";
    const acts = [press("Done", () => this.close())];
    if (this.isOwn)
      acts.push(page.act(id, "Or \u2026", "either"), page.act(id, "Group", "wrap"), ...page.moves(id));
    const actions = h("div", "nbext-actions", ...acts);
    const inside = [help && h("div", "nbext-help", help), folded(this.fields, node.fields ?? {}), actions];
    this.editor = h("fieldset", { class: "nbl-editor", "aria-label": node.label }, ...inside);
    this.editor.onkeydown = (event) => this.typed(event);
    this.el.append(this.editor);
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey) return;
    const enters = event.key === "Enter" && /** @type {Element} */ (event.target).matches("input");
    if (event.key !== "Escape" && !enters) return;
    event.preventDefault();
    this.close();
  }

  close() {
    this.page.open([]);
    this.summary.focus();
  }

  /** @param {boolean} [keep] @param {boolean} [wrong]  to a field that is wrong, unless all of the line is */
  focus(keep, wrong) {
    if (keep || !this.fields.length) {
      this.summary.focus();
      return;
    }
    const isWrong = (/** @type {LineField} */ { el }) =>
      wrong && !this.errors.textContent && el.classList.contains("nbl-wrong");
    const empty = this.fields.find((one) => isWrong(one) || (one.spec.required && !one.input.value));
    const next = this.fields.find((one) => !one.spec.required && one.input.localName !== "select");
    const field = empty || next || this.fields[0];
    field.unfold();
    field.input.focus();
  }
}

/** The fields, of which those that are empty and not asked for first are folded. @param {LineField[]} fields @param {Record<string, any>} held */
function folded(fields, held) {
  const [pair, time] = [
    fields.find((one) => one.spec.shape === "pair"),
    fields.find((one) => one.spec.picks === "time"),
  ];
  const first = [fields[0], pair, time];
  const shown = fields.filter((one) => one.spec.required || one.spec.name in held || first.includes(one));
  const rest = fields.filter((one) => !shown.includes(one)).map((one) => one.el);
  const inside = h("div", "nbl-fields", ...rest);
  const more = rest.length > 0 && h("details", "nbl-more", h("summary", null, "+ more"), inside);
  return h("div", "nbl-fields", ...shown.map((one) => one.el), more);
}

/** A field of a line. */
class LineField extends Field {
  /** @param {Lines} page @param {number} id @param {Spec} spec */
  constructor(page, id, spec) {
    super(page.link, id, { ...spec, label: spec.label + (spec.required ? " *" : "") });
    this.page = page;
    /** @type {string | undefined} */
    this.chain = undefined;
    this.el.className = "nbl-field";
    const how = { "aria-label": `${this.spec.label}, how`, onchange: () => this.bounded() };
    const bounded = spec.keys.includes("min") && spec.keys.includes("max");
    this.bounds = bounded ? select(how, Object.entries(SIGNS)) : null;
    if (this.bounds) this.pair.prepend(this.bounds);
    if (spec.picks === "time") this.times();
    else if (spec.picks || (spec.shape === "list" && spec.choices.length)) this.picks();
    this.bind("min");
  }

  // Enter closes the line.
  key() {}

  sent() {
    this.page.send("set", { id: this.id, field: this.spec.name, value: this.value });
  }

  /** @param {string} key @param {string} value */
  put(key, value) {
    this.inputs[key].value = value;
    this.sent();
  }

  /** Shows the bounds that an operator has. @param {string} how */
  bind(how) {
    if (!this.bounds) return;
    this.bounds.value = how;
    for (const [key, input] of Object.entries(this.inputs)) {
      const label = /** @type {HTMLElement} */ (input.parentElement);
      label.hidden = how !== "both" && how !== key;
    }
  }

  bounded() {
    const how = /** @type {HTMLSelectElement} */ (this.bounds).value;
    const { min, max } = this.inputs;
    // What was typed goes along with the operator.
    if (how === "max" && !max.value) [min.value, max.value] = ["", min.value];
    else if (how === "min" && !min.value) [min.value, max.value] = [max.value, ""];
    else if (how !== "both") this.inputs[how === "min" ? "max" : "min"].value = "";
    this.bind(how);
    this.sent();
    (how === "max" ? max : min).focus();
  }

  times() {
    for (const key of Object.keys(this.inputs)) {
      const small = { class: "nbext-button nbl-preset" };
      const presets = Object.entries(key ? {} : PRESETS).map(([value, said]) =>
        press(said, () => this.put(key, value), small),
      );
      const day = h("input", {
        type: "date",
        "aria-label": `${this.named(key)}, as a date`,
        onchange: (/** @type {any} */ event) => this.put(key, event.target.value),
      });
      this.below.before(h("div", "nbext-actions", ...presets, day));
    }
  }

  picks() {
    const { page, spec, id } = this;
    const input = /** @type {HTMLInputElement} */ (this.input);
    // Of a list that is typed, the last word is searched, and a pick takes its place.
    const last = () => (spec.shape === "list" ? (input.value.split(/[,\s]+/).pop() ?? "") : input.value);
    /** @type {import("./picker.js").Item[]} */
    const own = spec.choices.map((/** @type {[string, string]} */ [value, label]) => ({ value, label }));
    const box = new Picker(
      input,
      (done, wanted) => page.search(own.length ? [] : [spec.picks], own, last(), this.chain, done, wanted),
      (one) => {
        if (one.value.startsWith("$")) page.send("list", { id, value: one.value.slice(1) });
        else this.put("", input.value.slice(0, input.value.length - last().length) + one.value);
      },
    );
    this.below.before(box.list);
  }

  unfold() {
    this.el.closest(".nbl-more")?.setAttribute("open", "");
  }

  /** @param {any} shown @param {Wrong[]} errors */
  draw(shown, errors) {
    for (const [key, input] of Object.entries(this.inputs)) {
      const value = (key ? shown?.[key] : shown) ?? "";
      const select = input instanceof HTMLSelectElement;
      if (!select && active(input) === input) continue;
      if (select && ![...input.options].some((one) => one.value === value))
        input.append(h("option", { value }, value));
      if (input.value !== value) input.value = value;
    }
    const { min, max } = this.inputs;
    if (this.bounds && max.value)
      this.bind(min.value ? "both" : this.bounds.value === "both" ? "both" : "max");
    const wrong = errors.filter((one) => one.field === this.spec.name);
    if (shown !== undefined || wrong.length) this.unfold();
    this.el.classList.toggle("nbl-wrong", wrong.length > 0);
    this.say(wrong.map((one) => one.detail).join(" "), (key) =>
      wrong.some((one) => !one.key || one.key === key || !this.inputs[one.key]),
    );
  }
}
