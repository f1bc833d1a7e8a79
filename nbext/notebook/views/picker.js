// @ts-check
// A text input with what fits below it: arrows choose, Enter picks, Escape closes.
import { ARROWS, active, h, put, unique } from "./dom.js";

/** @typedef {{ kind?: string, key?: string, value: string, label: string, name?: string, marks?: [string, string][], holders?: string }} Item */
/** @typedef {(found: { found: Item[], error?: string }) => void} Done */

// A list that closes under the pointer would move what is clicked away from it.
let pressed = false;
for (const type of ["pointerdown", "pointerup", "pointercancel"])
  document.addEventListener(type, () => (pressed = type === "pointerdown"), { capture: true });

export class Picker {
  /** @param {HTMLInputElement} input @param {(done: Done, wanted: () => boolean) => void} search  asks if its answer is still wanted @param {(one: Item) => void} pick */
  constructor(input, search, pick) {
    this.input = input;
    this.search = search;
    this.pick = pick;
    /** @type {Item[]} */
    this.items = [];
    this.at = -1;
    this.asks = 0;
    this.waits = false;
    this.wanted = false;
    const props = { role: "listbox", id: unique("nbl-options"), "aria-label": "Suggestions" };
    this.list = h("div", { ...props, class: "nbl-options", hidden: true });
    put(input, "role", "combobox");
    put(input, "aria-expanded", "false");
    put(input, "aria-autocomplete", "list");
    put(input, "aria-controls", this.list.id);
    input.addEventListener("input", () => this.ask());
    input.addEventListener("focus", () => this.ask());
    input.addEventListener("blur", () => {
      this.wanted = false;
      if (pressed)
        document.addEventListener("pointerup", () => setTimeout(() => this.close(), 0), { once: true });
      else this.close();
    });
    input.addEventListener("keydown", (event) => this.key(event));
    // Else the input loses the focus, and with it the list, before the click.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  ask() {
    this.wanted = false;
    this.waits = true;
    this.asks += 1;
    const asked = this.asks;
    const wanted = () => asked === this.asks;
    this.search((found) => {
      if (wanted()) this.show(found.found, found.error);
    }, wanted);
  }

  /** @param {Item[]} items @param {string} [error] */
  show(items, error) {
    this.waits = false;
    if (active(this.input) !== this.input) return;
    this.items = items;
    const rows = items.map((one, at) => {
      const title = `${one.label} ${one.name || ""}`;
      const props = { role: "option", id: `${this.list.id}-${at}`, "aria-selected": "false", title };
      return h(
        "div",
        { ...props, class: "nbl-option", onclick: () => this.take(at) },
        h("span", "nbl-symbol", one.label),
        h("span", "nbl-name", one.name),
        ...(one.marks ?? []).map(([kind, words]) => h("span", `nbext-mark nbext-mark-${kind}`, words)),
        ["token", "collection"].includes(one.kind ?? "") && h("span", "nbl-of", one.kind),
        one.holders && h("span", "nbl-holders", one.holders),
      );
    });
    const wrong = { class: "nbl-option nbext-error", role: "option", "aria-disabled": "true" };
    if (error) rows.push(h("div", wrong, error));
    this.list.replaceChildren(...rows);
    this.list.hidden = rows.length === 0;
    put(this.input, "aria-expanded", String(rows.length > 0));
    const typed = this.input.value.trim().toLowerCase();
    const same = items.findIndex((one) => one.label.toLowerCase() === typed);
    const begins = items.findIndex((one) => one.label.toLowerCase().startsWith(typed));
    this.move(!typed || !items.length ? -1 : same >= 0 ? same : Math.max(begins, 0));
    if (this.wanted && items.length) this.take(Math.max(this.at, 0));
    this.wanted = false;
  }

  /** @param {number} at */
  move(at) {
    this.at = at;
    for (const [place, row] of [...this.list.children].entries())
      put(row, "aria-selected", String(place === at));
    put(this.input, "aria-activedescendant", at < 0 ? null : `${this.list.id}-${at}`);
    this.list.children[at]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} at */
  take(at) {
    const one = this.items[at];
    this.close();
    if (one) this.pick(one);
  }

  close() {
    this.asks += 1;
    this.waits = false;
    this.list.hidden = true;
    this.items = [];
    this.list.replaceChildren();
    put(this.input, "aria-expanded", "false");
    put(this.input, "aria-activedescendant", null);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = ARROWS[event.key]?.[1];
    const open = !this.list.hidden;
    if (by && open) this.move((this.at + by + this.items.length) % this.items.length);
    else if (event.key === "Escape" && open) this.close();
    else if (event.key === "Enter" && this.input.value.trim() && this.waits) this.wanted = true;
    else if (event.key === "Enter" && open && this.at >= 0) this.take(this.at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
