import assert from "node:assert/strict";
import { test } from "node:test";
import { document, Model } from "./page.js";

const { fill, h, walk } = await import("../../nbext/notebook/views/dom.js");
const { Button, Field, focusHeld, Status } = await import("../../nbext/notebook/views/form.js");
const { Line } = await import("../../nbext/notebook/views/line.js");
const { Lines } = await import("../../nbext/notebook/views/lines.js");
const { Link } = await import("../../nbext/notebook/views/link.js");
const { Picker } = await import("../../nbext/notebook/views/picker.js");

const HOSTILE = `<img src=x onerror="window.pwned = 1">`;
const SHOWN = {
  label: "Name",
  value: "",
  choices: [],
  help: "help",
  width: "1px",
  required: true,
  examples: "",
  error: "",
};
// jsdom lays nothing out.
window.HTMLElement.prototype.getClientRects = function () {
  return { length: this.closest("[hidden]") ? 0 : 1 };
};

test("a stranger's text is a text node, an attribute or a value, and never markup", () => {
  const made = h("div", { title: HOSTILE }, HOSTILE, h("input", { value: HOSTILE }));
  document.body.replaceChildren(made);
  assert.deepEqual([made.title, made.firstChild.data, made.lastChild.value], [HOSTILE, HOSTILE, HOSTILE]);
  assert.equal(document.querySelectorAll("img").length, 0);
  assert.equal(window.pwned, undefined);
});

test("an element that is in its place is not moved, so that it holds the focus", () => {
  const [one, two, three] = ["a", "b", "c"].map((name) => h("input", { name }));
  const box = h("div", null, one, two);
  document.body.replaceChildren(box);
  two.focus();
  fill(box, [three, two]);
  assert.deepEqual([...box.children], [three, two]);
  assert.equal(document.activeElement, two);
});

test("a field that is wrong says so to screen readers, and its help comes back when it is mended", () => {
  const model = new Model();
  const field = new Field(new Link(model, () => {}), 7, SHOWN);
  const input = field.el.querySelector("input");
  const told = () =>
    ["aria-invalid", "aria-required", "role"].map((name) =>
      (name === "role" ? field.below : input).getAttribute(name),
    );
  assert.deepEqual([told(), field.below.textContent], [[null, "true", null], "help"]);
  field.update({ error: "no" });
  assert.deepEqual([told(), field.below.textContent], [["true", "true", "alert"], "no"]);
  assert.equal(input.getAttribute("aria-describedby"), field.below.id);
  field.update({ error: "" });
  assert.deepEqual([told(), field.below.textContent], [[null, "true", null], "help"]);
  input.value = "typed";
  input.dispatchEvent(new window.Event("input"));
  input.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter" }));
  assert.deepEqual(model.said(), [
    { value: "typed", op: "typed", part: 7 },
    { op: "enter", part: 7 },
  ]);
});

test("lines of code are not laid out anew while they are typed, but once they are left, and Enter is theirs", () => {
  const model = new Model();
  const link = new Link(model, () => {});
  const field = new Field(link, 7, { ...SHOWN, shape: "code", value: "{}" });
  const lines = field.el.querySelector("textarea");
  document.body.replaceChildren(field.el);
  lines.focus();
  lines.value = '{"a":1}';
  lines.dispatchEvent(new window.Event("input"));
  lines.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter" }));
  link.flush();
  field.update({ value: '{"a": 1}' });
  assert.equal(lines.value, '{"a":1}');
  lines.blur();
  assert.equal(lines.value, '{"a": 1}');
  // What Python makes nothing else of stays as it is.
  lines.focus();
  lines.value = '{"a":';
  lines.dispatchEvent(new window.Event("input"));
  field.update({ error: "no" });
  lines.blur();
  assert.equal(lines.value, '{"a":');
  assert.deepEqual(model.said(), [
    { value: '{"a":1}', op: "typed", part: 7 },
    { value: '{"a":', op: "typed", part: 7 },
  ]);
  link.end();
});

test("lines of code, half of which are wrong while they are typed, are sent after a longer pause than a word", () => {
  const { setTimeout } = window;
  const waits = [];
  window.setTimeout = (_, wait) => waits.push(wait);
  for (const shape of ["text", "code"]) {
    const field = new Field(new Link(new Model(), () => {}), 7, { ...SHOWN, shape });
    field.input.dispatchEvent(new window.Event("input"));
  }
  window.setTimeout = setTimeout;
  assert.deepEqual(waits, [150, 400]);
});

test("what may not be copied is in sight and selected, and JSON that is not used is copied with a word", async () => {
  const link = new Link(new Model(), () => {});
  const code = new Field(link, 7, { ...SHOWN, shape: "code", value: "{}" });
  const [scope, root] = [0, 1].map((id) => ({
    ...{ id, not: false, errors: [], label: "", words: "", fields: {} },
    ...(id && { members: [], join: "all" }),
  }));
  const page = new Lines(
    link,
    8,
    {
      members: [1, 2, 3, 7],
      spec: { conditions: {}, groups: {} },
      tree: { scope, root, cell: "%%segment_query\n{}" },
      counted: {},
      opened: [],
    },
    (one) => (one === 7 ? code : { el: h("div") }),
  );
  document.body.replaceChildren(page.el);
  const pressed = async (label) => {
    [...page.el.querySelectorAll("button")].find((one) => one.textContent === label).click();
    await new Promise((done) => setImmediate(done));
    const { localName, selectionStart, selectionEnd, value } = document.activeElement;
    const selected = localName === "textarea" ? value.slice(selectionStart, selectionEnd) : null;
    return [page.el.querySelector(".nbl-beside .nbext-actions span").textContent, selected];
  };
  const copies = [];
  const clipboard = { writeText: async (value) => copies.push(value) };
  Object.defineProperty(globalThis, "navigator", { value: { clipboard }, configurable: true });
  assert.deepEqual(await pressed("Copy JSON"), ["Copied.", null]);
  assert.deepEqual(await pressed("Copy cell"), ["Copied.", null]);
  assert.equal(page.cell.hidden, true);
  code.input.value = "{";
  code.update({ error: "Not used: no JSON" });
  assert.deepEqual(await pressed("Copy JSON"), ["Copied, but it is not used.", null]);
  assert.deepEqual(copies, ["{}", "%%segment_query\n{}", "{"]);
  delete navigator.clipboard;
  const words = "This page may not copy: select the text and copy it.";
  assert.deepEqual(await pressed("Copy JSON"), [words, "{"]);
  assert.deepEqual(await pressed("Copy cell"), [words, "%%segment_query\n{}"]);
  assert.equal(page.cell.hidden, false);
  page.update({ tree: { scope, root, cell: "%%segment_query other\n{}" } });
  assert.equal(page.cell.value, "%%segment_query other\n{}");
});

test("a button that is switched off hands the focus to what is next to it", () => {
  const link = new Link(new Model(), () => {});
  const [run, stop] = ["Run", "Cancel"].map(
    (label, id) => new Button(link, id, { label, classes: "", disabled: false }),
  );
  const box = h("div", null, h("div", { class: "nbext-row" }, run.el, stop.el));
  document.body.replaceChildren(box);
  run.el.focus();
  focusHeld(box, () => run.update({ disabled: true }));
  assert.equal(document.activeElement, stop.el);
  focusHeld(box, () => {
    run.update({ disabled: false });
    link.parts.set(1, stop);
    link.heard({ op: "show", part: 1, changes: { hidden: true } });
  });
  assert.equal(document.activeElement, run.el);
});

test("what runs for two seconds can be cancelled, and asked for again where it may be; hidden, it hands the focus on", (t) => {
  const { setInterval } = window;
  let [now, tick] = [0, () => {}];
  window.setInterval = (act) => {
    tick = act;
  };
  t.mock.method(performance, "now", () => now);
  const model = new Model();
  const link = new Link(model, () => {});
  const status = new Status(link, 7, { text: "Asking", state: "info", running: true });
  const [bar, said, seconds, stop] = status.el.children;
  const box = h("div", null, h("button"), status.el);
  document.body.replaceChildren(box);
  const shown = () => [said.textContent, seconds.textContent, stop.hidden];
  assert.deepEqual(shown(), ["Asking", "", true]);
  for (const [passed, words] of [
    [1, ["Asking", "1 s", true]],
    [2, ["Asking", "2 s", false]],
  ]) {
    now = 1000 * passed;
    tick();
    assert.deepEqual(shown(), words);
  }
  const drawn = () => [bar.hidden, bar.getAttribute("value")];
  assert.deepEqual(drawn(), [true, null]);
  for (const share of [null, 0.25]) {
    status.update({ share });
    assert.deepEqual(drawn(), [false, share && String(share)]);
  }
  stop.focus();
  stop.click();
  assert.deepEqual(model.said(), [{ op: "cancel", part: 7 }]);
  // The same button, which holds the focus.
  focusHeld(box, () => status.update({ text: "Cancelled.", running: false, again: true }));
  assert.deepEqual([...shown(), stop.textContent], ["Cancelled.", "", false, "Retry"]);
  assert.deepEqual(drawn(), [true, "0.25"]);
  assert.equal(document.activeElement, stop);
  stop.click();
  assert.deepEqual(model.said().at(-1), { op: "again", part: 7 });
  focusHeld(box, () => status.update({ text: "Asking", running: true, again: false }));
  assert.deepEqual([...shown(), stop.textContent], ["Asking", "", true, "Cancel"]);
  assert.equal(document.activeElement, box.firstChild);
  window.setInterval = setInterval;
});

test("an open line is built again only when fields begin or cease to fit it, and not where it has none", () => {
  const conditions = { bare: { label: "Bare", help: "", fields: [] } };
  const page = { shown: { opened: [1], spec: { conditions } }, act: () => h("button"), moves: () => [] };
  const node = { id: 1, not: false, errors: [], key: "bare", label: "Bare", fields: {}, words: "" };
  const line = new Line(page, node);
  line.update(node);
  const built = line.editor;
  line.update({ ...node, not: true });
  assert.equal(line.editor, built);
  line.update({ ...node, fields: null, words: "[]" });
  assert.match(line.editor.textContent, /change it in the JSON of all/);
  assert.equal(line.el.querySelectorAll("fieldset").length, 1);
  line.update(node);
  assert.doesNotMatch(line.editor.textContent, /JSON/);
});

test("of several faults the first field in the order of the line has the focus, and none where all of it is wrong", () => {
  const specs = ["token", "balance", "since"].map((name) => ({
    ...{ name, label: name, help: "", shape: "text", keys: [], picks: "", choices: [], examples: "" },
    required: name === "token",
  }));
  const conditions = { token: { label: "Token", help: "", fields: specs } };
  const link = new Link(new Model(), () => {});
  const page = {
    link,
    shown: { opened: [1], spec: { conditions } },
    act: () => h("button"),
    moves: () => [],
  };
  const line = new Line(page, { id: 1 });
  document.body.replaceChildren(line.el);
  const goesTo = (token, ...wrong) => {
    // What somebody is in is not overwritten.
    document.activeElement.blur();
    const errors = wrong.map((field) => ({ field, key: "", detail: "no" }));
    const about = { id: 1, not: false, key: "token", label: "Token", words: "" };
    line.update({ ...about, errors, fields: { token } });
    line.focus(false, true);
    return line.fields.find(({ input }) => input === document.activeElement).spec.name;
  };
  assert.equal(goesTo("UNI"), "balance");
  assert.equal(goesTo("UNI", "since"), "since");
  assert.equal(goesTo("UNI", "since", "token"), "token");
  assert.equal(goesTo("", "since"), "token");
  assert.equal(goesTo("UNI", "since", "novel"), "balance");
});

test("arrows go to the nearest in their direction, also to a short bar between long ones, and stay at an end", () => {
  const boxes = {
    long: [0, 0, 300, 10],
    short: [0, 20, 5, 30],
    longest: [0, 40, 400, 50],
    cell: [0, 100, 20, 120],
    beside: [20, 100, 40, 120],
    below: [0, 120, 20, 140],
    last: [20, 120, 40, 140],
  };
  const all = Object.entries(boxes).map(([name, [left, top, right, bottom]]) => {
    const one = h("button", { name, tabindex: name === "long" ? 0 : -1 });
    one.getBoundingClientRect = () => ({ left, top, right, bottom });
    return one;
  });
  document.body.replaceChildren(...all);
  const pressed = (key) => {
    const event = { key, target: document.activeElement, preventDefault() {}, stopPropagation() {} };
    return [walk(event, all), document.activeElement.name];
  };
  all[0].focus();
  const keys = "ArrowDown ArrowDown ArrowDown ArrowRight ArrowDown ArrowDown ArrowLeft ArrowUp Home End x";
  assert.deepEqual(keys.split(" ").map(pressed), [
    [true, "short"],
    [true, "longest"],
    [true, "cell"],
    [true, "beside"],
    [true, "last"],
    [true, "last"],
    [true, "below"],
    [true, "cell"],
    [true, "long"],
    [true, "last"],
    [false, "last"],
  ]);
  assert.deepEqual(
    all.map((one) => one.tabIndex),
    [-1, -1, -1, -1, -1, -1, 0],
  );
});

test("what is typed is searched once typing pauses, with own entries below, and not once its list is closed", async () => {
  const model = new Model();
  const link = new Link(model, () => {});
  const search = Lines.prototype.search.bind({ link, id: 7 });
  const input = h("input");
  let kinds = ["token"];
  const entries = ["Activity", "Universe"].map((label) => ({ value: "", label }));
  const { list } = new Picker(
    input,
    (done, wanted) => search(kinds, entries, input.value, null, done, wanted),
    () => {},
  );
  document.body.replaceChildren(input);
  const type = (value) => {
    input.value = value;
    input.dispatchEvent(new window.Event("input"));
  };
  input.focus();
  type("uni");
  link.flush();
  const asked = [{ kinds: ["token"], term: "uni", chain: null, op: "search", part: 7 }];
  assert.deepEqual(model.said(), asked);
  const labels = () => [...list.children].map((one) => one.querySelector(".nbl-symbol").textContent);
  assert.deepEqual(labels(), []);
  link.heard({ op: "answer", part: 7, number: 1, found: [{ value: "UNI", label: "UNI" }] });
  await new Promise(setImmediate);
  assert.deepEqual(labels(), ["UNI", "Universe"]);
  kinds = [];
  type("ACT");
  assert.deepEqual(labels(), ["Activity"]);
  kinds = ["token"];
  type("unis");
  input.blur();
  link.send(7, "undo");
  assert.deepEqual(model.said(), [...asked, { op: "undo", part: 7 }]);
  link.end();
});
