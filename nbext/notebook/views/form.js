// @ts-check
// Draws forms: their title, groups of parts, text, fields, buttons and a bar. What is wrong with a field is said to
// screen readers, too, and where what has the focus is switched off or hidden, the focus goes to what is next to it.
import { active, around, fill, h, press, put, select, stopAt, text, unique, usable, walk } from "./dom.js";

/** @typedef {import("./link.js").Link} Link */
/** @typedef {import("./link.js").Message} Message */
/** @typedef {(shown: Message) => import("./link.js").Part} Make */
/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Input */

const CODING = 400; // ms without a key before lines of code are sent, half of which are wrong while they are typed
const FOCUSABLE = "input, select, textarea, button";

export class Group {
  /** @param {Link} link @param {number} _ @param {Message} shown @param {Make} make */
  constructor(link, _, shown, make) {
    this.link = link;
    this.make = make;
    this.el = h("div", shown.classes);
    this.inside = this.el;
    this.members(shown.members);
  }

  /** @param {Message[]} members */
  members(members) {
    fill(
      this.inside,
      members.map((one) => (this.link.parts.get(one.id) ?? this.make(one)).el),
    );
  }

  /** @param {Message} changes */
  update(changes) {
    if (changes.members) this.members(changes.members);
  }
}

export class Form extends Group {
  /** @param {Link} link @param {number} id @param {Message} shown @param {Make} make */
  constructor(link, id, shown, make) {
    super(link, id, { ...shown, members: [] }, make);
    this.inside = h("div");
    const title = h("div", { class: "nbext-title", role: "heading", "aria-level": 2 }, shown.title);
    this.el.append(title, h("div", "nbext-note nbext-hint", shown.hint), this.inside);
    this.members(shown.members);
  }
}

/** What Python draws. A press in a row is one of its button, and arrows move from button to button. */
export class Html {
  /** @param {Link} link @param {number} id @param {Message} shown */
  constructor(link, id, shown) {
    this.link = link;
    this.id = id;
    this.el = h("div", shown.classes);
    this.el.onclick = (event) => this.press(event);
    this.el.onkeydown = (event) => this.key(event);
    /** @type {HTMLElement[]} */
    this.buttons = [];
    this.update(shown);
  }

  /** @param {Message} changes */
  update(changes) {
    if (!("value" in changes)) return;
    const held = this.buttons.includes(/** @type {HTMLElement} */ (active(this.el)));
    // Ours, made by the functions of Python that a stranger's text goes through.
    this.el.innerHTML = changes.value;
    this.buttons = [...this.el.querySelectorAll("button")];
    const pressed = this.buttons.find((one) => one.getAttribute("aria-pressed"));
    stopAt(this.buttons, pressed);
    if (held) (pressed ?? this.buttons[0])?.focus();
  }

  /** @param {MouseEvent} event */
  press(event) {
    const button = around(event, "tr")?.querySelector("button");
    if (button) this.link.send(this.id, "press", { at: button.dataset.at });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (walk(event, this.buttons) || !event.key.startsWith("Page")) return;
    this.link.send(this.id, "key", { key: event.key });
    event.preventDefault();
    event.stopPropagation();
  }
}

/**
 * A line of status; of what is running, for how long already, which is not announced, after two seconds Cancel, and a
 * bar where Python says how much of it is done, or that this is not known; of what can be asked for again, Retry.
 */
export class Status {
  /** @param {Link} link @param {number} id @param {Message} shown */
  constructor(link, id, shown) {
    this.said = h("div");
    this.seconds = h("span", "nbext-note");
    this.stop = press("", () => link.send(id, this.shown.running ? "cancel" : "again"));
    this.bar = h("progress", { "aria-label": "Progress" });
    // As in a row of buttons the focus goes on where this one is hidden.
    this.el = h("div", "nbext-row nbext-status", this.bar, this.said, this.seconds, this.stop);
    /** @type {Message} */
    this.shown = {};
    this.timer = 0;
    this.update(shown);
  }

  /** @param {Message} changes */
  update(changes) {
    const { text: said, state = "info", running, share } = Object.assign(this.shown, changes);
    this.bar.hidden = !running || share === undefined;
    put(this.bar, "value", share);
    put(this.said, "class", `nbext-${state}`);
    put(this.said, "role", state === "bad" ? "alert" : "status");
    text(this.said, said);
    if ("running" in changes || "again" in changes) this.count(running);
  }

  /** Says each second for how long it runs already. @param {boolean} running */
  count(running) {
    const began = performance.now();
    const show = () => {
      const passed = Math.floor((performance.now() - began) / 1000);
      text(this.seconds, passed ? `${passed} s` : "");
      text(this.stop, this.shown.again ? "Retry" : "Cancel");
      this.stop.hidden = passed < 2 && !this.shown.again;
    };
    this.end();
    show();
    if (running) this.timer = window.setInterval(show, 1000);
  }

  end() {
    clearInterval(this.timer);
  }
}

export class Button {
  /** @param {Link} link @param {number} id @param {Message} shown */
  constructor(link, id, shown) {
    this.link = link;
    const act = () => link.send(id, "press", { here: link.inserter(this.el) !== null });
    this.el = press(shown.label, act, { class: `nbext-button ${shown.classes}`, title: shown.tip || null });
    this.update(shown);
  }

  /** @param {Message} changes */
  update(changes) {
    if ("disabled" in changes) this.el.disabled = changes.disabled;
  }
}

/**
 * An input, or one for each bound, with its label, and below it help or what is wrong with it. A condition's in
 * `line.js` sends elsewhere what is typed.
 */
export class Field {
  /** @param {Link} link @param {number} id @param {Message} spec */
  constructor(link, id, spec) {
    this.link = link;
    this.id = id;
    this.spec = spec;
    this.check = typeof spec.value === "boolean";
    this.below = h("div", { id: unique("nbext-below"), title: spec.help });
    const keys = spec.shape === "pair" ? spec.keys : [""];
    /** @type {Record<string, Input>} */
    this.inputs = Object.fromEntries(keys.map((/** @type {string} */ key) => [key, this.made(key)]));
    this.input = this.inputs[keys[0]];
    this.pair = h("div", "nbl-pair", ...keys.map((/** @type {string} */ key) => this.labelled(key)));
    this.el = h("div", "nbext-field", this.pair, this.below);
    this.el.style.width = spec.width ?? "";
    this.update(spec);
  }

  /** @param {string} key */
  named(key) {
    return key ? `${this.spec.label}, ${key}` : this.spec.label;
  }

  /** @param {string} key */
  labelled(key) {
    const label = h("span", { title: this.named(key) }, this.named(key));
    return this.check
      ? h("label", "nbext-check", this.input, label)
      : h("label", "nbext-labelled", label, this.inputs[key]);
  }

  /** @param {string} key @returns {Input} */
  made(key) {
    const { spec, below } = this;
    const common = { "aria-describedby": below.id, "aria-required": spec.required ? "true" : null };
    if (this.check) return h("input", { ...common, type: "checkbox", oninput: () => this.sent() });
    // What a list may hold is typed.
    if (spec.choices.length && spec.shape !== "list")
      return select({ ...common, onchange: () => this.sent() }, spec.choices);
    const placeholder = (key ? spec.examples[key] : spec.examples) || null;
    const plain = { ...common, autocomplete: "off", spellcheck: "false", placeholder, title: placeholder };
    const isCode = spec.shape === "code";
    const code = { ...plain, class: "nbl-json", rows: 6 };
    const input = isCode ? h("textarea", code) : h("input", { ...plain, type: "text" });
    const wait = isCode ? CODING : undefined;
    input.oninput = () => this.link.later(below.id, () => this.sent(), wait);
    input.onkeydown = (/** @type {KeyboardEvent} */ event) => this.key(event);
    input.onblur = () => {
      this.link.flush();
      this.renew();
    };
    return input;
  }

  get value() {
    const { input, inputs } = this;
    if (this.spec.shape === "pair")
      return Object.fromEntries(Object.entries(inputs).map(([key, one]) => [key, one.value]));
    return this.check ? /** @type {HTMLInputElement} */ (input).checked : input.value;
  }

  sent() {
    this.spec.value = this.value;
    this.link.send(this.id, "typed", { value: this.value });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter" && this.spec.shape !== "code") this.link.send(this.id, "enter");
  }

  /** @param {Message} changes */
  update(changes) {
    Object.assign(this.spec, changes);
    if ("value" in changes) this.renew();
    if ("error" in changes) this.say(changes.error);
  }

  /** Shows its value; not in lines that are being typed, which Python would lay out under the fingers. */
  renew() {
    const { value, shape } = this.spec;
    const isTyped = shape === "code" && active(this.input) === this.input;
    if (value !== undefined && value !== this.value && !isTyped)
      Object.assign(this.input, { [this.check ? "checked" : "value"]: value });
  }

  /** Says what is wrong with it, or with one of its bounds. @param {string} error @param {(key: string) => boolean} [isWrong] */
  say(error, isWrong = () => true) {
    text(this.below, error || (this.spec.help ?? ""));
    put(this.below, "class", error ? "nbext-error" : "nbext-help");
    // Screen readers announce an alert.
    put(this.below, "role", error ? "alert" : null);
    for (const [key, input] of Object.entries(this.inputs))
      put(input, "aria-invalid", error && isWrong(key) ? "true" : null);
  }

  /** @param {Message} message */
  told({ op }) {
    // Of several views of a form only that one, which somebody is in.
    if (op === "focus" && this.el.closest(".nbext-form")?.contains(active(this.el))) this.input.focus();
  }
}

/**
 * Runs a change of a view; where what has the focus is switched off or hidden by it, the next to it gets the focus.
 * @param {HTMLElement} el @param {() => void} change
 */
export function focusHeld(el, change) {
  const held = active(el);
  const row = held?.closest(".nbext-row");
  change();
  if (!held || !el.contains(row ?? null) || usable(held)) return;
  const near = [...(row?.querySelectorAll("button") ?? []), ...el.querySelectorAll(FOCUSABLE)];
  const next = /** @type {HTMLElement | undefined} */ (near.find(usable));
  next?.focus();
}
