// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bins } from "../../nbext/notebook/views/histogram.js";
import {
  plainNumber,
  scaled,
  shareText,
  shortText,
  sixDigits,
  unitsText,
} from "../../nbext/notebook/views/numbers.js";

// Python is held to the same table.
const cases = JSON.parse(readFileSync(new URL("numbers.json", import.meta.url), "utf8"));

for (const [name, write] of Object.entries({
  six_digits: sixDigits,
  share_text: shareText,
  short_text: shortText,
})) {
  test(`${name} writes each number as Python does`, () => {
    for (const [value, expected] of cases[name]) assert.equal(write(value), expected, String(value));
  });
}

test("bins are those of Python, and what each filters holds what it counts", () => {
  for (const [values, expected] of cases.bins) {
    const made = bins(values);
    assert.deepEqual(
      made.map(({ name, count }) => [name, count]),
      expected,
      String(values),
    );
    for (const { count, min = "", max = "" } of made) {
      const below = max.startsWith("<");
      const end = Number(max.replace("<", ""));
      assert.equal(
        values.filter((/** @type {number} */ one) => one >= Number(min) && (below ? one < end : one <= end))
          .length,
        count,
      );
    }
  }
});

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
