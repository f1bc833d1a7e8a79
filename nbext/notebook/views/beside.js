// @ts-check
// Beside a segment's conditions: how many wallets match, what Python says of each condition, and the JSON.
import { active, Clock, copied, h, press, put, text, unique } from "./dom.js";
import { count } from "./numbers.js";

const TYPING = 400; // ms without a key before half-typed JSON is read

export class Beside {
  /** @param {import("./lines.js").Lines} page @param {import("./link.js").Part[]} counts  what Python draws of them */
  constructor(page, counts) {
    this.page = page;
    this.clock = new Clock(() => {});
    this.total = h("span", { role: "status" });
    // Not announced: it changes every second.
    this.seconds = h("span", { class: "nbext-note" });
    this.stop = press("Cancel", () => page.send(page.shown.counted.act), { hidden: true });
    this.error = h("div", { class: "nbext-error", role: "alert", id: unique("nbl") });
    this.json = h("textarea", {
      class: "nbl-json",
      spellcheck: "false",
      rows: 6,
      "aria-label": "The conditions as JSON",
      oninput: () =>
        page.link.later("json", () => page.send("json", { id: 0, value: this.json.value }), TYPING),
      onblur: () => {
        page.link.flush();
        this.draw(page.shown.tree);
      },
    });
    this.said = h("span", { class: "nbext-note", role: "status" });
    const insert = () => page.send("insert", { here: page.link.inserter(page.el) !== null });
    this.el = h(
      "div",
      { class: "nbl-beside" },
      h("div", { class: "nbl-total" }, this.total, this.seconds, " ", this.stop),
      ...counts.map((one) => one.el),
      h("div", { class: "nbext-label" }, "JSON"),
      this.json,
      this.error,
      h(
        "div",
        { class: "nbext-actions" },
        press("Copy JSON", () => this.copy(this.json.value)),
        page.shown.spec.magics && press("Copy cell", () => this.copy(page.shown.tree.cell)),
        page.shown.spec.cells && press("Insert cell", insert, { class: "nbext-button nbext-insert" }),
        this.said,
      ),
    );
  }

  /** @param {any} tree */
  draw(tree) {
    const { json } = this;
    if (active(json) !== json && json.value !== tree.json) json.value = tree.json;
    text(this.error, tree.jsonError);
    put(json, "aria-invalid", String(tree.jsonError !== ""));
    put(json, "aria-describedby", tree.jsonError ? this.error.id : null);
  }

  /** @param {any} counted */
  count({ matched, stale, text: said, act }) {
    const inside =
      typeof matched !== "number"
        ? []
        : [
            h("span", { class: stale ? "nbext-old" : "nbext-big" }, count(matched)),
            stale ? " before the change. " : matched === 1 ? " wallet matches" : " wallets match",
          ];
    this.total.replaceChildren(...inside, ...(said ? [h("span", { class: "nbext-note" }, said)] : []));
    this.wait(act || "");
  }

  /** Of a count that takes 2 s, for how long already, and Cancel; of one that failed or was cancelled, Retry. @param {string} act */
  wait(act) {
    const { stop } = this;
    const held = active(stop) === stop;
    this.clock.show = (seconds) => {
      text(this.seconds, seconds < 2 ? "" : ` ${seconds} s`);
      stop.hidden = act !== "count" && seconds < 2 && !(act && held);
      text(stop, act === "count" ? "Retry" : "Cancel");
      stop.title = act === "count" ? "Count again" : "Stop counting";
    };
    this.clock.run(act === "stop");
    // A button that is hidden loses the focus to the page's body.
    if (held && stop.hidden) this.page.options.focus(true);
  }

  end() {
    this.clock.run(false);
  }

  /** @param {string} what */
  async copy(what) {
    const may = await copied(what);
    text(this.said, may ? "Copied." : "This page may not copy: select the text and copy it.");
    if (!may) this.json.select();
  }
}
