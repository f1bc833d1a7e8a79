// @ts-check
// A view's way to Python. Every message is heard at once unless a cell is running: then the view says that it waits.
import { unique } from "./dom.js";

/** @typedef {any} Message  what Python sends, or is asked */
/** @typedef {{ el: HTMLElement, update?: (changes: Message) => void, told?: (message: Message) => void, end?: () => void }} Part */

const TYPING = 150; // ms without a key before what is typed is sent
const PATIENCE = 1000; // ms without an answer before a view says that it waits

export class Link {
  /** @param {import("@anywidget/types").AnyModel<any>} model @param {(waits: boolean) => void} waiting */
  constructor(model, waiting) {
    this.model = model;
    this.waiting = waiting;
    this.view = unique(`view-${Date.now()}`);
    this.number = 0;
    /** @type {Map<number, Part>} */
    this.parts = new Map();
    /** @type {Map<number, number>} */
    this.unheard = new Map();
    /** @type {Map<number, (message: Message) => void>} */
    this.asked = new Map();
    /** @type {Map<string, { act: () => void, timer: number }>} */
    this.typed = new Map();
  }

  /** @param {number} part @param {string} op @param {Message} [more] @returns {number} */
  send(part, op, more) {
    this.flush();
    this.number += 1;
    const { number } = this;
    const timer = window.setTimeout(() => this.waiting(true), PATIENCE);
    this.unheard.set(number, timer);
    this.model.send({ ...more, op, part, number, from: this.view });
    return number;
  }

  /** @param {number} part @param {string} op @param {Message} [more] @returns {Promise<Message>} the answer */
  ask(part, op, more) {
    return new Promise((resolve) => this.asked.set(this.send(part, op, more), resolve));
  }

  /** Does something once typing pauses, and always before anything else is sent. @param {string} key @param {() => void} act @param {number} [wait] */
  later(key, act, wait = TYPING) {
    clearTimeout(this.typed.get(key)?.timer);
    this.typed.set(key, { act, timer: window.setTimeout(() => this.flush(), wait) });
  }

  flush() {
    const late = [...this.typed.values()];
    this.typed.clear();
    for (const { act, timer } of late) {
      clearTimeout(timer);
      act();
    }
  }

  /** @param {Message} message */
  heard(message) {
    const { op, number, changes } = message;
    const part = this.parts.get(message.part);
    if (message.to && message.to !== this.view) return;
    if (op === "heard") {
      clearTimeout(this.unheard.get(number));
      this.unheard.delete(number);
      if (!this.unheard.size) this.waiting(false);
    } else if (op === "answer") {
      this.asked.get(number)?.(message);
      this.asked.delete(number);
    } else if (op === "insert") this.inserter(/** @type {Part} */ (part).el)?.(message.cell);
    else if (op !== "show") part?.told?.(message);
    else if (part && message.by !== this.view) {
      if ("hidden" in changes) part.el.hidden = changes.hidden;
      part.update?.(changes);
    }
  }

  /**
   * What inserts a cell below the one of an element, where the front end lets a widget reach them: JupyterLab and
   * Notebook 7 do.
   * @param {Element} el @returns {((source: string) => void) | null}
   */
  inserter(el) {
    const cells = /** @type {any} */ (this.model).widget_manager?.context?.model?.sharedModel;
    const cell = /** @type {HTMLElement | null} */ (el.closest("[data-windowed-list-index]"));
    if (typeof cells?.insertCell !== "function" || !cell) return null;
    const at = Number(cell.dataset.windowedListIndex) + 1;
    return (source) => cells.insertCell(at, { cell_type: "code", source, metadata: { trusted: true } });
  }

  end() {
    for (const timer of this.unheard.values()) clearTimeout(timer);
    for (const { timer } of this.typed.values()) clearTimeout(timer);
  }
}
