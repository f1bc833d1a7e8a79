import assert from "node:assert/strict";
import { test } from "node:test";
import { Model } from "./page.js";

const { Link } = await import("../../nbext/notebook/views/link.js");

function linked() {
  const model = new Model();
  const waits = [];
  return { model, waits, link: new Link(model, (waiting) => waits.push(waiting)) };
}

test("what is typed is sent once typing pauses, and before anything else", () => {
  const { model, link } = linked();
  link.later("field", () => link.send(1, "typed", { value: "a" }));
  link.later("field", () => link.send(1, "typed", { value: "ap" }));
  assert.deepEqual(model.said(), []);
  link.send(2, "press");
  assert.deepEqual(model.said(), [
    { value: "ap", op: "typed", part: 1 },
    { op: "press", part: 2 },
  ]);
  link.flush();
  assert.equal(model.sent.length, 2);
  link.end();
});

test("an answer goes to who asked, and to no other view", async () => {
  const { model, link } = linked();
  const asked = link.ask(3, "rows", { from_row: 0 });
  const [{ number, from }] = model.sent;
  link.heard({ op: "answer", number, to: "another view", rows: ["not mine"] });
  link.heard({ op: "answer", number, to: from, rows: ["mine"] });
  const { rows } = await asked;
  assert.deepEqual(rows, ["mine"]);
  link.end();
});

test("a view waits for a cell that runs after a second without a word, and no longer once all is heard", () => {
  const { setTimeout } = window;
  const timers = [];
  window.setTimeout = (act, wait) => timers.push({ act, wait });
  const { model, waits, link } = linked();
  link.send(1, "press");
  assert.deepEqual([waits, timers.map(({ wait }) => wait)], [[], [1000]]);
  timers[0].act();
  assert.deepEqual(waits, [true]);
  link.heard({ op: "heard", number: model.sent[0].number });
  assert.deepEqual(waits, [true, false]);
  window.setTimeout = setTimeout;
});

test("a change goes to its part, but not to the view that made it", () => {
  const { link } = linked();
  const changes = [];
  link.parts.set(1, { update: (change) => changes.push(change) });
  link.heard({ op: "show", part: 1, changes: { value: "theirs" } });
  link.heard({ op: "show", part: 1, by: link.view, changes: { value: "mine" } });
  link.heard({ op: "show", part: 2, changes: { value: "of a part that is gone" } });
  assert.deepEqual(changes, [{ value: "theirs" }]);
});
