// A page without a browser, and a model that remembers what it was sent.
import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html><body></body>");
const { HTMLSelectElement } = window;
Object.assign(globalThis, { window, document: window.document, HTMLSelectElement });
// Without a layout nothing can be scrolled to.
window.Element.prototype.scrollIntoView = () => {};

export const { document } = window;

export class Model {
  sent = [];

  send(message) {
    this.sent.push(message);
  }

  /** What was sent, without what tells one message from another. */
  said() {
    return this.sent.map(({ number, from, ...said }) => said);
  }
}
