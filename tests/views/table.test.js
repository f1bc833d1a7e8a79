import assert from "node:assert/strict";
import { test } from "node:test";
import { document } from "./page.js";

globalThis.ResizeObserver = class {
  observe() {}
  disconnect() {}
};
const { Table } = await import("../../nbext/notebook/views/table.js");
const { ArraySource } = await import("../../nbext/notebook/views/source.js");

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
};

function tableOf(columns) {
  const source = new ArraySource(
    Array.from({ length: columns }, (_, at) => ({ name: `c${at}`, kind: "number", texts: `${at}\x7f2\x7f30` })),
    3,
  );
  const asked = [];
  const summary = source.summary.bind(source);
  source.summary = (at) => {
    asked.push(at);
    return summary(at);
  };
  const table = new Table(source);
  document.body.replaceChildren(table.el);
  return { table, asked };
}

test("of two hundred columns those in sight are drawn and summed up, and each again after another order", async () => {
  const { table, asked } = tableOf(200);
  await settled();
  const drawn = table.el.querySelectorAll("[role=columnheader]").length;
  assert.ok(drawn > 3 && drawn < 12, String(drawn));
  assert.deepEqual(asked, Array.from({ length: drawn }, (_, at) => at));
  table.sort(1, false);
  await settled();
  assert.deepEqual(asked.slice(drawn), asked.slice(0, drawn));
});

test("a filter keeps its look whatever is sorted, hidden or resized, until it is cleared", async () => {
  const { table } = tableOf(4);
  await settled();
  const looks = () => table.heads.map(({ bars }) => bars.classList.contains("nbt-brushed"));
  const shown = () => table.el.querySelectorAll("[role=row]").length - 1;
  table.asked.filters[1] = { min: "2" };
  for (const change of [() => table.renew(), () => table.sort(0, false), () => table.toHide(), () => table.resize(table.heads[1], 300)]) {
    change();
    await settled();
    assert.deepEqual([looks(), shown()], [[false, true, false, false], 2]);
  }
  table.clear.click();
  await settled();
  assert.deepEqual([looks(), shown()], [[false, false, false, false], 3]);
});
