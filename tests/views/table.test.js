import assert from "node:assert/strict";
import { test } from "node:test";
import { document, Model } from "./page.js";

globalThis.ResizeObserver = class {
  observe() {}
  disconnect() {}
};
const { LinkedTable, Table } = await import("../../nbext/notebook/views/table.js");
const { histogram, isTaken } = await import("../../nbext/notebook/views/histogram.js");
const { Link } = await import("../../nbext/notebook/views/link.js");
const { ArraySource } = await import("../../nbext/notebook/views/source.js");

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
};

const FIVES = [0, 5, 10, 15, 20, 25, 30].map((low) => ({
  name: `${low} to ${low + 5}`,
  count: 0,
  min: String(low),
  max: `< ${low + 5}`,
}));

function tableOf(columns) {
  const source = new ArraySource(
    Array.from({ length: columns }, (_, at) => ({
      name: `c${at}`,
      kind: "number",
      texts: `${at}\x7f2\x7f30`,
      bins: FIVES,
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

test("a table without columns takes no keys and no clicks, and one without rows says so", async () => {
  const empty = [{ name: "n", kind: "number", texts: "", bins: [], decimals: 0 }];
  for (const columns of [[], empty]) {
    const table = new Table(new ArraySource(columns, 0));
    document.body.replaceChildren(table.el);
    await settled();
    assert.deepEqual(
      [table.el.inert, table.status.textContent, table.body.className],
      [!columns.length, "0 rows", "nbt-body nbt-empty"],
    );
  }
});

test("the Tab key stops at one button of the toolbar that is not off, whatever is switched off and on again", async () => {
  const { table } = tableOf(4);
  await settled();
  const stops = () =>
    [...table.tools.querySelectorAll("button:enabled[tabindex='0']")].map((one) => one.textContent);
  const press = (button, key) => {
    button.focus();
    button.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true }));
  };
  const filtered = async () => {
    table.asked.filters[1] = { min: "2" };
    table.renew();
    await settled();
  };
  assert.deepEqual(stops(), ["Pin"]);
  await filtered();
  press(table.pin, "End");
  assert.deepEqual([stops(), document.activeElement], [["Clear filters"], table.clear]);
  table.clear.click();
  await settled();
  assert.deepEqual(stops(), ["Pin"]);
  press(table.pin, "End");
  assert.deepEqual(stops(), ["Hide"]);
  // All other keys do what they do anywhere.
  const keys = ["End", "Enter", "Tab"].map((key) => {
    const event = new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
    table.hide.dispatchEvent(event);
    return event.defaultPrevented;
  });
  assert.deepEqual(keys, [true, false, false]);
  await filtered();
  assert.deepEqual(stops(), ["Hide"]);
});

test("what is typed for a column is asked of it where another one is chosen before the pause, and once", async () => {
  const { table } = tableOf(4);
  document.body.append(table.el);
  await settled();
  const questions = [];
  const ask = table.source.ask.bind(table.source);
  table.source.ask = (question) => {
    questions.push(JSON.stringify(question.filters));
    return ask(question);
  };
  table.choose(1);
  table.min.focus();
  table.min.value = "2";
  table.min.dispatchEvent(new window.Event("input"));
  // As a click on a cell does.
  table.min.blur();
  table.choose(2);
  await settled();
  assert.deepEqual([questions, table.min.value], [['{"1":{"min":"2"}}'], ""]);
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(questions.length, 1);
});

test("one row is no rows", async () => {
  const columns = [{ name: "n", kind: "number", texts: "5", bins: [], decimals: 0 }];
  const table = new Table(new ArraySource(columns, 1));
  await settled();
  assert.equal(table.status.textContent, "1 row");
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
  const source = new ArraySource([{ name: "mean", kind: "number", texts, bins: FIVES }], 5);
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

test("the bins of all rows count those that filters take, from the first to the last that has one", async () => {
  const days = ["2025-01-01", "2025-02-01", "2025-03-01"].map((day, at, all) => ({
    name: `from ${day}`,
    count: 1,
    min: day,
    max: all[at + 1] ? `< ${all[at + 1]}` : "2025-03-31",
  }));
  const seen = ["2025-01-31T23:59:59Z", "2025-02-01T00:00:00Z", "\0", "2025-03-31T12:00:00Z"].join("\x7f");
  const source = new ArraySource(
    [
      { name: "n", kind: "number", texts: "1\x7f12\x7f14\x7f30", bins: FIVES },
      { name: "seen", kind: "time", texts: seen, bins: days },
    ],
    4,
  );
  const counted = async (filters) => {
    await source.ask({ order: [], filters, search: "" });
    const both = await Promise.all([source.summary(0), source.summary(1)]);
    return both.map(({ bars }) => bars.map(({ name, count }) => `${name}: ${count}`));
  };
  const every = ["from 2025-01-01: 1", "from 2025-02-01: 1", "from 2025-03-01: 1", "missing: 1"];
  assert.deepEqual(await counted({ 0: { min: "10", max: "< 15" } }), [
    ["0 to 5: 1", "5 to 10: 0", "10 to 15: 2", "15 to 20: 0", "20 to 25: 0", "25 to 30: 0", "30 to 35: 1"],
    ["from 2025-02-01: 1", "missing: 1"],
  ]);
  assert.deepEqual(await counted({ 1: { max: "2025-02-01T00:00" } }), [
    ["0 to 5: 1", "5 to 10: 0", "10 to 15: 1"],
    every,
  ]);
  assert.deepEqual((await counted({ 0: { min: "99" } }))[1], []);
});

test("a view of a table follows what another asked, but for one that has asked something later itself", async () => {
  const model = new Model();
  const link = new Link(model, () => {});
  const columns = [{ name: "n", kind: "number" }];
  const table = new LinkedTable(link, 7, { columns, total: 3 });
  link.parts.set(7, table);
  const answered = async (count) => {
    for (const { op, number, from } of model.sent.splice(0)) {
      const answer =
        op === "ask" ? { count, errors: {} } : { rows: [["1"]], summary: { bars: [], missing: 0 } };
      link.heard({ ...answer, op: "answer", to: from, number });
    }
    await settled();
  };
  const followed = async (order, search, count) => {
    const found = { asked: { order, filters: {}, search }, count, errors: {} };
    link.heard({ op: "show", part: 7, by: "another", changes: { found } });
    await settled();
  };
  const shown = () => [
    table.status.textContent,
    table.heads[0].el.getAttribute("aria-sort"),
    table.search.value,
  ];
  document.body.replaceChildren(table.el);
  await answered(3);
  assert.deepEqual(shown(), ["3 rows", "none", ""]);
  await answered(3);
  await followed([[0, "descending"]], "a", 1);
  assert.deepEqual(shown(), ["1 of 3 rows", "descending", "a"]);
  assert.deepEqual(
    model.said().map(({ op }) => op),
    ["rows", "summary"],
  );
  await answered(1);
  table.sort(0, false);
  await followed([], "", 3);
  await answered(1);
  assert.deepEqual(shown(), ["1 of 3 rows", "ascending", "a"]);
  link.end();
});
