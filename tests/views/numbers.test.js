// @ts-check
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import {
  instant,
  plainNumber,
  scaled,
  shareText,
  sixDigits,
  unitsText,
} from "../../nbext/notebook/views/numbers.js";

// Python is held to the same table.
const cases = JSON.parse(readFileSync(new URL("numbers.json", import.meta.url), "utf8"));

for (const [name, write] of Object.entries({
  six_digits: sixDigits,
  share_text: shareText,
})) {
  test(`${name} writes each number as Python does`, () => {
    for (const [value, expected] of cases[name]) assert.equal(write(value), expected, String(value));
  });
}

test("a typed number is scaled exactly, and what is left of it rounds inwards", () => {
  assert.equal(plainNumber(" 1,000.5 "), "1000.5");
  assert.equal(plainNumber("many"), null);
  assert.equal(plainNumber("0,5"), null);
  assert.deepEqual(scaled("1000.5", 18), {
    floor: 1000500000000000000000n,
    ceiling: 1000500000000000000000n,
  });
  assert.deepEqual(scaled("0.0000000000000000001", 18), { floor: 0n, ceiling: 1n });
  assert.deepEqual(scaled("-1.5", 0), { floor: -2n, ceiling: -1n });
  assert.deepEqual(scaled("1e3", 2), { floor: 100000n, ceiling: 100000n });
  assert.equal(unitsText("1047333333300000000001", 18), "1047.333333300000000001");
  assert.equal(unitsText("-5", 2), "-0.05");
});

test("a time that names no zone is one of UTC wherever the page is read, and another text is none", () => {
  process.env.TZ = "America/New_York";
  const noon = Date.UTC(2025, 0, 31, 12) / 1000;
  for (const typed of [
    "2025-01-31T12:00:00Z",
    "2025-01-31T12:00",
    "2025-01-31 12:00:00.000",
    "2025-01-31T17:30+05:30",
  ])
    assert.equal(instant(typed), noon, typed);
  assert.equal(instant("2025-01-31"), noon - 12 * 3600);
  assert.equal(instant("2025-01-31T12:00:00.000001Z"), noon + 1e-6);
  // Date.parse makes a day in March of it.
  for (const typed of ["2025-02-29", "2025-02-30T12:00:00Z"]) assert.ok(Number.isNaN(instant(typed)), typed);
  for (const typed of ["soon", "1", "2025-01-31T12:00.5", "31 Jan 2025", "2025-01", "2025-02-31T25:00", ""])
    assert.ok(Number.isNaN(instant(typed)), typed);
});

test("no view has a lookbehind, for which Safari before 16.4 refuses the whole module", () => {
  const views = new URL("../../nbext/notebook/views/", import.meta.url);
  const modules = readdirSync(views).filter((name) => name.endsWith(".js"));
  assert.ok(modules.includes("numbers.js"));
  for (const name of modules)
    assert.doesNotMatch(readFileSync(new URL(name, views), "utf8"), /\(\?<[=!]/, name);
});
