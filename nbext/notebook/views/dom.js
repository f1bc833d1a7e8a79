// @ts-check
// The only place that makes elements: a stranger's text becomes text nodes, values and attributes alone.

/** @typedef {string | Node | null | undefined | false} Inside */
/** @typedef {Record<string, unknown> | null} Props  listeners are named `onclick` and so on */

const PROPERTIES = ["value", "disabled", "hidden", "checked"];
let made = 0;

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Props} [props] @param {...Inside} inside
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, props, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (typeof value === "function")
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (PROPERTIES.includes(name)) Object.assign(element, { [name]: value });
    else put(element, name, value);
  }
  element.append(
    .../** @type {(string | Node)[]} */ (
      inside.filter((one) => one !== null && one !== undefined && one !== false)
    ),
  );
  return element;
}

/** Sets an attribute, or takes it away. @param {Element} element @param {string} name @param {unknown} value */
export function put(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/** @param {Node} element @param {string} said */
export function text(element, said) {
  if (element.textContent !== said) element.textContent = said;
}

/**
 * Puts the wanted elements into a parent and moves none that is in its place: one that is moved loses the focus.
 * @param {Element} parent @param {Element[]} wanted
 */
export function fill(parent, wanted) {
  const held = new Set(wanted);
  for (const child of [...parent.children]) if (!held.has(child)) child.remove();
  wanted.forEach((child, at) => {
    if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null);
  });
}

/** A button. @param {string} label @param {(event: Event) => void} act @param {Props} [props] */
export const press = (label, act, props) =>
  h("button", { type: "button", class: "nbext-button", ...props, onclick: act }, label);

/** An id that no other element of the page has. @param {string} prefix */
export const unique = (prefix) => `${prefix}-${made++}`;

/** The element that has the focus, also where a front end draws in a shadow root. @param {Element} el */
export const active = (el) =>
  /** @type {HTMLElement | null} */ (
    /** @type {Document | ShadowRoot} */ (el.getRootNode()).activeElement ?? null
  );

/**
 * Has the Tab key stop at one of some elements, among which other keys move; that it stopped at, if it is still there.
 * @param {Element[]} all @param {Element | undefined} [one]
 */
export function stopAt(all, one = all.find((each) => each.getAttribute("tabindex") === "0")) {
  const stop = one && all.includes(one) ? one : all[0];
  for (const each of all) put(each, "tabindex", each === stop ? 0 : -1);
}

/** Whether an element can have the focus. @param {HTMLElement} one */
export const usable = (one) =>
  one.isConnected && !(/** @type {HTMLButtonElement} */ (one).disabled) && one.getClientRects().length > 0;

/** Says each second for how many seconds something runs already. */
export class Clock {
  /** @param {(seconds: number) => void} show */
  constructor(show) {
    this.show = show;
    this.timer = 0;
  }

  /** @param {boolean} runs */
  run(runs) {
    const began = performance.now();
    clearInterval(this.timer);
    this.show(0);
    if (!runs) return;
    this.timer = window.setInterval(() => this.show(Math.floor((performance.now() - began) / 1000)), 1000);
  }
}

/** @param {string} what @returns {Promise<boolean>} whether this page may copy */
export function copied(what) {
  return navigator.clipboard
    ? navigator.clipboard.writeText(what).then(
        () => true,
        () => false,
      )
    : Promise.resolve(false);
}
