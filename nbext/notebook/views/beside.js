// @ts-check
// Beside a segment's conditions: how many wallets match, what Python says of each condition, and the JSON.
import { active, copied, h, press, put, text, unique } from "./dom.js";
import { count } from "./numbers.js";

const TYPING = 400; // ms without a key before half-typed JSON is read

export class Beside {
  /** @param {import("./lines.js").Lines} page @param {import("./link.js").Part[]} counts  whether it counts, and what Python draws of it */
  constructor(page, [counting, ...counts]) {
    this.page = page;
    this.total = h("span", { role: "status" });
    this.error = h("div", { class: "nbext-error", role: "alert", id: unique("nbl") });
    this.json = h("textarea", {
      class: "nbl-json",
      spellcheck: "false",
      rows: 6,
      "aria-label": "The conditions as JSON",
      oninput: () => page.link.later("json", () => page.send("json", { value: this.json.value }), TYPING),
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
      h("div", { class: "nbl-total" }, this.total, counting.el),
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
  count({ matched, stale }) {
    const number = h("span", { class: stale ? "nbext-old" : "nbext-big" }, count(matched));
    const after = stale ? " before the change." : matched === 1 ? " wallet matches" : " wallets match";
    this.total.replaceChildren(...(typeof matched === "number" ? [number, after] : []));
  }

  /** @param {string} what */
  async copy(what) {
    const may = await copied(what);
    text(this.said, may ? "Copied." : "This page may not copy: select the text and copy it.");
    if (!may) this.json.select();
  }
}
