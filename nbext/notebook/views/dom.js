// @ts-check
// The only place that makes elements: a stranger's text becomes text nodes, values and attributes alone.

/** @typedef {string | Node | null | undefined | false} Inside */
/** @typedef {Record<string, unknown> | string | null} Props  a class alone, or more; listeners are named `onclick` and so on */

const PROPERTIES = ["value", "disabled", "hidden", "checked"];
let made = 0;

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Props} [props] @param {...Inside} inside
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, props, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(typeof props === "string" ? { class: props } : (props ?? {}))) {
    if (typeof value === "function")
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (PROPERTIES.includes(name)) Object.assign(element, { [name]: value });
    else put(element, name, value);
  }
  for (const one of inside) if (one || one === "") element.append(one);
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

/** A button. @param {string} label @param {(event: Event) => void} act @param {Record<string, unknown>} [props] */
export const press = (label, act, props) =>
  h("button", { type: "button", class: "nbext-button", ...props, onclick: act }, label);

/** @param {Props} props @param {string[][]} choices  a value each, and what is shown of it */
export const select = (props, choices) =>
  h("select", props, ...choices.map(([value, said]) => h("option", { value }, said)));

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

/** How far each goes to the right and down. */
export const ARROWS = /** @type {Record<string, [number, number]>} */ ({
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
});

/**
 * Moves the focus from one of these elements to another: by an arrow to the nearest in its direction, by Home and End to
 * the first and the last. Returns whether the key is one of these.
 * @param {KeyboardEvent} event @param {Element[]} all
 */
export function walk(event, all) {
  const from = /** @type {Element} */ (event.target);
  const way = ARROWS[event.key];
  const to = { Home: all[0], End: all.at(-1) }[event.key] ?? (way && nearest(from, way, all));
  if (!to || !all.includes(from)) return false;
  stopAt(all, to);
  /** @type {HTMLElement} */ (to).focus();
  event.preventDefault();
  event.stopPropagation();
  return true;
}

/** The nearest element in a direction: cells, bars, points and buttons alike. @param {Element} from @param {[number, number]} way @param {Element[]} all */
function nearest(from, [right, down], all) {
  const here = from.getBoundingClientRect();
  let [found, least] = [from, Infinity];
  for (const one of all) {
    const there = one.getBoundingClientRect();
    const x = (there.left + there.right - here.left - here.right) / 2;
    const y = (there.top + there.bottom - here.top - here.bottom) / 2;
    const ahead = x * right + y * down;
    // Of two that are both beside it, such as a short bar and a long one, the nearer; else that which begins where it does.
    const gap = right
      ? Math.max(0, there.top - here.bottom, here.top - there.bottom)
      : Math.max(0, there.left - here.right, here.left - there.right);
    const begins = Math.abs(right ? there.top - here.top : there.left - here.left);
    const far = ahead + 3 * gap + begins / 100;
    if (ahead > 0.5 && far < least) [found, least] = [one, far];
  }
  return found;
}

/** The element that fits a selector, and is or has inside what an event is of. @param {Event} event @param {string} selector */
export const around = (event, selector) =>
  /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(selector));

/** Whether an element can have the focus. @param {Element} one */
export const usable = (one) =>
  one.isConnected && !(/** @type {HTMLButtonElement} */ (one).disabled) && one.getClientRects().length > 0;

/** @param {string} what @returns {Promise<boolean>} whether this page may copy */
export async function copied(what) {
  try {
    await navigator.clipboard.writeText(what);
    return true;
  } catch {
    return false;
  }
}
