// @ts-check
// What the loader calls: draws a widget's parts, and once they are drawn hides the snapshot beside them.
import { Chart } from "./chart.js";
import { h } from "./dom.js";
import { Button, Field, Form, focusHeld, Group, Html, Status } from "./form.js";
import { Lines } from "./lines.js";
import { Link } from "./link.js";
import { LinkedTable } from "./table.js";

/** @typedef {import("./link.js").Message} Message */
/** @typedef {import("./link.js").Part} Part */

/** @type {Record<string, new (link: Link, id: number, shown: Message, make: (shown: Message) => Part) => Part>} */
const KINDS = {
  form: Form,
  group: Group,
  html: Html,
  status: Status,
  field: Field,
  button: Button,
  lines: Lines,
  table: LinkedTable,
  chart: Chart,
};
const WAITS = "A cell is running; waiting for it.";

/** @param {{ model: import("@anywidget/types").AnyModel<any>, el: HTMLElement, css: string }} widget */
export function mount({ model, el, css }) {
  // Else a letter on a button is a command of the notebook.
  const box = h("div", { class: "nbext-view", "data-lm-suppress-shortcuts": "true" });
  const waits = h("div", { class: "nbext-note nbext-waits", role: "status" });
  const link = new Link(model, (waiting) => {
    waits.textContent = waiting ? WAITS : "";
  });
  /** @param {Message} shown @returns {Part} */
  const make = (shown) => {
    const part = new KINDS[shown.kind](link, shown.id, shown, make);
    part.el.hidden = Boolean(shown.hidden);
    link.parts.set(shown.id, part);
    return part;
  };
  /** @param {Message} message */
  const heard = (message) => {
    if (message.op === "draw" && message.to === link.view) {
      box.replaceChildren(make(message.root).el);
      // Only now, and only while this is in the page: who sees the live view does not see its snapshot twice.
      const name = CSS.escape(model.get("snapshot"));
      const output = ".jp-OutputArea-child";
      box.classList.add(`${name}-live`);
      // The snapshot of a chart is its picture, which can bear no name.
      const picture = `${output}:has(.${name}-live) + ${output}:has(.vega-embed, .jp-RenderedImage)`;
      el.append(h("style", null, `.${name}, ${output}:has(.${name}), ${picture} { display: none }`));
    } else focusHeld(box, () => link.heard(message));
  };
  el.append(h("style", null, css), box, waits);
  // From here on it changes once: when the kernel of this widget is restarted or is gone.
  const gone = () => box.classList.add("nbext-gone");
  model.on("msg:custom", heard);
  model.on("comm_live_update", gone);
  link.send(0, "begin");
  return () => {
    model.off("msg:custom", heard);
    model.off("comm_live_update", gone);
    for (const part of link.parts.values()) part.end?.();
    link.end();
  };
}
