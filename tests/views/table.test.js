import assert from "node:assert/strict";
import { test } from "node:test";
import { document } from "./page.js";

globalThis.ResizeObserver = class {
  observe() {}
  disconnect() {}
};
const { Table } = await import("../../nbext/notebook/views/table.js");
const { histogram, isTaken } = await import("../../nbext/notebook/views/histogram.js");
const { ArraySource } = await import("../../nbext/notebook/views/source.js");

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
};

function tableOf(columns) {
  const source = new ArraySource(
    Array.from({ length: columns }, (_, at) => ({
      name: `c${at}`,
      kind: "number",
      texts: `${at}\x7f2\x7f30`,
    })),
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
  assert.deepEqual(
    asked,
    Array.from({ length: drawn }, (_, at) => at),
  );
  table.sort(1, false);
  await settled();
  assert.deepEqual(asked.slice(drawn), asked.slice(0, drawn));
});

test("what is brushed over stays whole and looks so, and the others narrow, whatever is sorted or resized, until it is cleared", async () => {
  const { table } = tableOf(4);
  await settled();
  const heads = () =>
    table.heads.map(({ el, bars }) => [
      el.classList.contains("nbt-filtered"),
      bars.querySelectorAll(".nbt-bar").length,
      bars.querySelectorAll(".nbt-brushed").length,
    ]);
  const shown = () => table.el.querySelectorAll("[role=row]").length - 1;
  const whole = heads();
  assert.deepEqual(whole[1], [false, 7, 0]);
  table.asked.filters[1] = { min: "2", max: "< 30" };
  for (const change of [
    () => table.renew(),
    () => table.sort(0, false),
    () => table.resize(table.heads[1], 300),
  ]) {
    change();
    await settled();
    assert.deepEqual([heads()[1], heads()[0][1], shown()], [[true, 7, 6], 1, 1]);
  }
  table.clear.click();
  await settled();
  assert.deepEqual([heads(), shown()], [whole, 3]);
});

test("a bar looks brushed over where the filter takes something of what it counts", () => {
  const cases = [
    [{ min: "1e2", max: "< 2e2" }, { min: "200" }, false],
    [{ min: "1e2", max: "2e2" }, { min: "200" }, true],
    [{ min: "1e2", max: "< 2e2" }, { max: "100" }, true],
    [{ min: "1e2", max: "< 2e2" }, { max: "< 1,00" }, false],
    [{ min: "1e2", max: "< 2e2" }, { min: "150", max: "150" }, true],
    [{ min: "2025-01-01", max: "< 2025-02-01" }, { min: "2025-01-31T12:00:00Z" }, true],
    [{ min: "2025-01-01", max: "< 2025-02-01" }, { min: "2025-02-01" }, false],
    [{ text: "=a" }, { text: "=a" }, true],
    [{ text: "=a" }, { text: "=b" }, false],
    [{ min: "1", max: "2" }, {}, false],
    [{ min: "1", max: "2" }, { min: "many" }, false],
    [{ min: "1", max: "9" }, { min: "0,5" }, false],
    [{}, { min: "1" }, false],
  ];
  for (const [bar, filter, taken] of cases)
    assert.equal(isTaken(bar, filter), taken, JSON.stringify([bar, filter]));
});

test("a brush that ends on the bar of what is missing filters up to the last bar that it was over", () => {
  const asked = [];
  const bars = [
    { name: "1", count: 1, min: "1", max: "1" },
    { name: "2", count: 1, min: "2", max: "2" },
    { name: "missing", count: 3 },
  ];
  const box = histogram(bars, {}, (filter) => asked.push(filter));
  const [first, second, missing] = box.children;
  // jsdom knows no events of a pointer.
  box.onpointerdown({ target: first });
  box.onpointermove({ target: second, buttons: 1 });
  box.onpointermove({ target: missing, buttons: 1 });
  const brushed = [...box.children].map((bar) => bar.classList.contains("nbt-brushed"));
  assert.deepEqual(brushed, [true, true, false]);
  box.onpointerup();
  box.onpointerdown({ target: missing });
  box.onpointerup();
  assert.deepEqual(asked, [{ min: "1", max: "2" }]);
});

test("numbers without end are sorted, filtered and added up as in the kernel", async () => {
  const texts = ["1.5", "inf", "\0", "-inf", "20"].join("\x7f");
  const source = new ArraySource([{ name: "mean", kind: "number", texts }], 5);
  const shown = async (order, filters) => {
    await source.ask({ order, filters, search: "" });
    return (await source.rows(0, 5)).flat();
  };
  assert.deepEqual(await shown([[0, "descending"]], {}), ["inf", "20", "1.5", "-inf", null]);
  const { min, max, sum } = await source.summary(0);
  assert.deepEqual([min, max, sum], ["-inf", "inf", "nan"]);
  assert.deepEqual(await shown([], { 0: { min: "2" } }), ["inf", "20"]);
  assert.equal((await source.summary(0)).sum, "inf");
});
