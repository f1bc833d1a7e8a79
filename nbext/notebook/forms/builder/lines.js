// Draws the builder's lines, their editors, the funnel and the JSON. Python holds the query: what is done here is sent
// as a message, and comes back as the trait `tree`. A stranger's text becomes text nodes, values and attributes alone.

const JOINS = { all: "AND", any: "OR" };
const LEGENDS = { all: "All of these", any: "Any of these" };
const PRESETS = [["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"], ["180d", "180 days"], ["365d", "1 year"]];
const TYPING = 150; // ms without a key before what is typed is sent

let made = 0;

function h(tag, props, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (["value", "disabled", "hidden", "multiple"].includes(name)) element[name] = value;
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...inside.filter((one) => one !== null));
  return element;
}

const text = (element, said) => { if (element.textContent !== said) element.textContent = said; };

// Puts the wanted elements into a parent and moves none that is in its place: one that is moved loses the focus.
function fill(parent, wanted) {
  const keep = new Set(wanted);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  wanted.forEach((child, at) => { if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] || null); });
}

const press = (label, act, props) => h("button", { type: "button", class: "nbl-button", ...props, onclick: act }, label);

class Page {
  constructor(model, el) {
    Object.assign(this, { model, el, view: `${Date.now()}-${made++}`, parts: new Map(), asked: new Map(), number: 0 });
    this.late = null;
    this.build();
    this.draw();
    this.count();
  }

  send(op, more) {
    this.flush();
    this.model.send({ op, view: this.view, ...more });
  }

  // Typing is sent once it pauses, and always before anything else is asked.
  later(act, wait = TYPING) {
    clearTimeout(this.timer);
    this.late = act;
    this.timer = setTimeout(() => this.flush(), wait);
  }

  flush() {
    clearTimeout(this.timer);
    const late = this.late;
    this.late = null;
    if (late) late();
  }

  build() {
    this.el.classList.add("nbl");
    // Else a letter on a button is a command of the notebook.
    this.el.setAttribute("data-lm-suppress-shortcuts", "true");
    this.undo = press("Undo", () => this.send("undo"));
    this.redo = press("Redo", () => this.send("redo"));
    this.options = press("Options", () => { this.unfolded = !this.unfolded; this.draw(); });
    this.scope = h("fieldset", { class: "nbl-editor" }, h("legend", { class: "nbl-unseen" }, "Options of the whole segment"));
    this.scopeFields = this.model.get("spec").scope.map((spec) => new Field(this, 0, spec));
    this.scope.append(h("div", { class: "nbl-fields" }, ...this.scopeFields.map((one) => one.el)));
    this.list = h("div", { class: "nbl-list" });
    this.total = h("span", { role: "status" });
    // Not announced: it changes every second.
    this.seconds = h("span", { class: "nbext-note" });
    this.stop = press("Cancel", () => this.send(this.model.get("counted").act), { hidden: true });
    this.funnel = h("table", { class: "nbl-funnel" });
    this.sample = h("div", { class: "nbext-note nbl-sample" });
    this.notes = h("div", { class: "nbext-note" });
    this.jsonError = h("div", { class: "nbext-error", role: "alert", id: `nbl-${made++}` });
    this.json = h("textarea", {
      class: "nbl-json", spellcheck: "false", rows: 6, "aria-label": "The conditions as JSON",
      oninput: () => this.later(() => this.send("json", { id: 0, value: this.json.value }), 400),
      onblur: () => { this.flush(); this.draw(); },
    });
    this.copied = h("span", { class: "nbext-note", role: "status" });
    const tree = () => this.model.get("tree");
    const beside = h("div", { class: "nbl-beside" }, h("div", { class: "nbl-total" }, this.total, this.seconds, " ", this.stop), this.funnel, this.sample, this.notes,
      h("div", { class: "nbext-label" }, "JSON"), this.json, this.jsonError,
      h("div", { class: "nbl-actions" }, ...[press("Copy JSON", () => this.copy(this.json.value)),
        press("Copy cell", () => this.copy(tree().cell)),
        this.model.get("spec").cells ? press("Insert cell", () => this.send("insert", { here: this.cells() !== null }), { class: "nbl-button nbext-insert" }) : null,
        this.copied].filter((one) => one !== null)));
    const bar = h("div", { class: "nbl-actions" }, this.undo, this.redo, this.options);
    this.el.append(h("div", { class: "nbl-main" }, bar, this.scope, this.list), beside);
    this.listen();
  }

  listen() {
    this.model.on("change:tree change:opened", () => this.draw());
    this.model.on("change:counted", () => this.count());
    this.model.on("msg:custom", (message) => this.told(message));
    this.el.addEventListener("keydown", (event) => this.key(event));
    // A line or a list that closes under the pointer would move what is clicked away from it.
    this.down = () => { this.pressed = true; };
    document.addEventListener("pointerdown", this.down, true);
    this.released = () => setTimeout(() => { this.pressed = false; this.leave(); }, 0);
    this.focused = () => { if (!this.pressed) this.leave(); };
    document.addEventListener("pointerup", this.released);
    document.addEventListener("focusin", this.focused);
  }

  end() {
    clearInterval(this.clock);
    document.removeEventListener("pointerdown", this.down, true);
    document.removeEventListener("pointerup", this.released);
    document.removeEventListener("focusin", this.focused);
  }

  // Closes the lines that the focus has left.
  leave() {
    const at = document.activeElement;
    if (!at || at === document.body || !this.entered) return;
    const open = this.model.get("opened").filter((id) => this.parts.get(id)?.el.contains(at));
    if (open.length !== this.model.get("opened").length) this.open(open);
  }

  open(ids) {
    this.flush();
    this.entered = ids.length > 0;
    this.model.set("opened", ids);
    this.model.save_changes();
    this.draw();
  }

  told(message) {
    if (message.answers) {
      const answer = message.view === this.view && this.asked.get(message.answers);
      this.asked.delete(message.answers);
      if (answer) answer(message);
      return;
    }
    if (message.insert) {
      if (message.view === this.view) this.cells()?.insertCell(this.place() + 1, { cell_type: "code", source: message.insert, metadata: { trusted: true } });
      return;
    }
    const form = this.el.closest(".nbext-form") || this.el;
    const here = message.view ? message.view === this.view : form.contains(document.activeElement);
    if (here) this.go(message);
  }

  go({ goto, field, keep }) {
    if (goto === "removed") this.gone?.querySelector("button").focus();
    else if (goto === "add") this.top.add.input.focus();
    else if (this.parts.get(goto)) {
      const part = this.parts.get(goto);
      if (part.line && !keep && !this.model.get("opened").includes(goto)) this.open([goto]);
      this.entered = true;
      part.focus(keep, field);
    } else this.top.add.input.focus();
  }

  search(kinds, term, chain, answer) {
    this.number += 1;
    this.asked.clear();
    this.asked.set(this.number, answer);
    this.send("search", { kinds, term, chain, number: this.number });
  }

  // The notebook's cells, where the front end lets a widget reach them: JupyterLab and Notebook 7 do.
  cells() {
    const cells = this.model.widget_manager?.context?.model?.sharedModel;
    return typeof cells?.insertCell === "function" && this.place() >= 0 ? cells : null;
  }

  // Where the cell of this view is among all; -1 in a view that is in no cell.
  place() {
    return Number(this.el.closest("[data-windowed-list-index]")?.dataset.windowedListIndex ?? -1);
  }

  async copy(what) {
    try {
      await navigator.clipboard.writeText(what);
      text(this.copied, "Copied.");
    } catch {
      text(this.copied, "This page may not copy: select the text and copy it.");
      this.json.select();
    }
  }

  key(event) {
    const typing = event.target.matches("input, textarea");
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key === "Enter") this.send("run");
    else if (command && !typing && event.key.toLowerCase() === "z") this.send(event.shiftKey ? "redo" : "undo");
    else if (command && !typing && event.key.toLowerCase() === "y") this.send("redo");
    else return;
    event.preventDefault();
  }

  draw() {
    const tree = this.model.get("tree");
    if (!tree.root) return;
    this.undo.disabled = !tree.undo;
    this.redo.disabled = !tree.redo;
    const shown = this.unfolded || this.model.get("opened").includes(0) || Object.keys(tree.scope).length > 0 || tree.scopeErrors.length > 0;
    this.scope.hidden = !shown;
    this.options.setAttribute("aria-expanded", String(shown));
    for (const field of this.scopeFields) {
      if (field.spec.shape === "order") field.offer(tree.orders);
      field.update(tree.scope[field.spec.name], tree.scopeErrors);
    }
    const seen = new Set();
    this.top = this.part(tree.root, seen);
    this.top.update(tree.root, seen, null);
    fill(this.list, [this.top.el]);
    for (const id of this.parts.keys()) if (!seen.has(id)) this.parts.delete(id);
    if (document.activeElement !== this.json && !this.late && this.json.value !== tree.json) this.json.value = tree.json;
    this.json.rows = Math.min(16, 2 + this.json.value.split("\n").reduce((rows, one) => rows + Math.ceil((one.length + 1) / 44), 0));
    const wrong = tree.jsonError || "";
    text(this.jsonError, wrong);
    this.json.setAttribute("aria-invalid", String(wrong !== ""));
    if (wrong) this.json.setAttribute("aria-describedby", this.jsonError.id);
    else this.json.removeAttribute("aria-describedby");
    this.lineCounts();
  }

  part(node, seen) {
    seen.add(node.id);
    if (!this.parts.has(node.id)) {
      const top = node.id === this.model.get("tree").root.id;
      this.parts.set(node.id, node.members ? new Group(this, node.id, top) : new Line(this, node));
    }
    return this.parts.get(node.id);
  }

  count() {
    const counted = this.model.get("counted");
    const known = typeof counted.matched === "number";
    const match = known && counted.matched === 1 ? " wallet matches" : " wallets match";
    const number = known ? h("span", { class: counted.stale ? "nbext-old" : "nbext-big" }, counted.matched.toLocaleString("en")) : null;
    this.total.replaceChildren(...[number, known && !counted.stale ? match : null, known && counted.stale ? " before the change. " : null,
      counted.text ? h("span", { class: "nbext-note" }, counted.text) : null].filter((one) => one !== null));
    this.wait(counted.act || "");
    this.el.classList.toggle("nbl-stale", Boolean(counted.stale));
    const steps = counted.steps || [];
    const head = ["Condition", "Alone", "Remaining"].map((one, at) => h("th", { scope: "col", class: at ? "nbext-number" : null }, one));
    const rows = steps.map((step) => h("tr", null,
      h("td", { title: step.label }, h("div", { class: "nbl-step" }, step.label),
        h("div", { class: "nbl-bar", style: `width: ${Math.max(1, 100 * step.share)}%` })),
      h("td", { class: "nbext-number" }, step.alone), h("td", { class: "nbext-number" }, step.remaining)));
    this.funnel.hidden = rows.length < 2;
    this.funnel.replaceChildren(h("thead", null, h("tr", null, ...head)), h("tbody", null, ...rows));
    // Of the conditions that are shown, and of no earlier ones.
    const wallets = counted.stale ? [] : counted.sample || [];
    const short = (one) => (one.length > 20 ? `${one.slice(0, 8)}…${one.slice(-6)}` : one);
    this.sample.replaceChildren(...(wallets.length ? ["Such as"] : []), ...wallets.map((one) => h("code", { title: one }, short(one))));
    this.notes.replaceChildren(...(counted.notes || []).map((note) => h("div", null, note)));
    this.lineCounts();
  }

  // Of a count that takes 2 s, for how long already, and Cancel; of one that failed or was cancelled, Retry.
  wait(act) {
    const began = performance.now();
    const held = document.activeElement === this.stop;
    clearInterval(this.clock);
    const show = () => {
      const seconds = act === "stop" ? Math.floor((performance.now() - began) / 1000) : 0;
      text(this.seconds, seconds < 2 ? "" : ` ${seconds} s`);
      this.stop.hidden = act !== "count" && seconds < 2 && !(act && held);
      text(this.stop, act === "count" ? "Retry" : "Cancel");
      this.stop.title = act === "count" ? "Count again" : "Stop counting";
    };
    show();
    if (act === "stop") this.clock = setInterval(show, 1000);
    // A button that is hidden loses the focus to the page's body.
    if (held && this.stop.hidden) this.options.focus();
  }

  lineCounts() {
    const { lines = {}, stale } = this.model.get("counted");
    for (const [id, part] of this.parts) {
      const said = lines[id] || "";
      text(part.counted, said && stale ? `${said} (before)` : said);
      part.counted.title = said ? "Wallets that match this condition; of NOT, those that it takes away" : "";
    }
  }
}

class Group {
  constructor(page, id, top) {
    Object.assign(this, { page, id, joins: new Map() });
    this.legend = h("legend", { class: top ? "nbext-label" : "nbl-legend" });
    this.not = press("NOT", () => page.send("negate", { id }), { class: "nbl-button nbl-not" });
    this.counted = h("span", { class: "nbl-count" });
    const act = (label, op, more) => press(label, () => page.send(op, { id, ...more }), { "data-op": op });
    this.head = h("div", { class: "nbl-actions" }, this.not, act("Ungroup", "unwrap"), act("Duplicate", "duplicate"),
      act("Up", "move", { by: -1 }), act("Down", "move", { by: 1 }), act("Remove", "remove"), this.counted);
    this.errors = h("div", { class: "nbext-error", role: "alert" });
    this.members = h("div", { class: "nbl-members" });
    this.add = new Adder(page, id, top);
    this.el = h("fieldset", { class: top ? "nbl-top" : "nbl-group" }, this.legend, top ? null : this.head, this.errors,
      this.members, this.add.el);
    this.top = top;
  }

  update(node, seen) {
    text(this.legend, this.top ? "Conditions" : `${node.not ? "NOT: " : ""}${LEGENDS[node.join]}`);
    this.not.setAttribute("aria-pressed", String(node.not));
    text(this.errors, node.errors.map((one) => one.detail).join(" "));
    const { removed } = this.page.model.get("tree");
    const rows = [];
    node.members.forEach((member, at) => {
      if (removed?.parent === this.id && removed.place === at) rows.push(this.gone(removed));
      if (at) rows.push(this.join(node, member.id));
      const part = this.page.part(member, seen);
      part.update(member, seen);
      rows.push(part.el);
    });
    if (removed?.parent === this.id && removed.place >= node.members.length) rows.push(this.gone(removed));
    fill(this.members, rows);
  }

  join(node, id) {
    if (!this.joins.has(id)) {
      const button = press("", () => this.page.send("join", { id: this.id }), { class: "nbl-button nbl-join" });
      this.joins.set(id, h("div", { class: "nbl-between" }, button));
    }
    const other = node.join === "all" ? "any" : "all";
    const [button] = this.joins.get(id).children;
    text(button, JOINS[node.join]);
    button.title = `Change to ${JOINS[other]} between all of these`;
    return this.joins.get(id);
  }

  // Undo is at the left, where a line has its NOT: the second click of a double click on Remove falls beside it.
  gone(removed) {
    if (this.page.goneFor !== removed) {
      this.page.goneFor = removed;
      this.page.gone = h("div", { class: "nbl-head nbl-removed" }, press("Undo", () => this.page.send("undo")),
        h("span", { role: "status", title: removed.words }, `Removed: ${removed.words}`));
    }
    return this.page.gone;
  }

  focus(keep) {
    (keep ? this.not : this.add.input).focus();
  }
}

class Line {
  constructor(page, node) {
    const { id } = node;
    Object.assign(this, { page, id, line: true, fields: null });
    this.not = press("NOT", () => page.send("negate", { id }), { class: "nbl-button nbl-not" });
    this.kind = h("span", { class: "nbext-kind" });
    this.words = h("span", { class: "nbl-words" });
    this.summary = press("", () => this.toggle(), { class: "nbl-summary" });
    this.summary.append(this.kind, this.words);
    this.counted = h("span", { class: "nbl-count" });
    this.remove = press("\u00d7", () => page.send("remove", { id }), { class: "nbl-button nbl-remove", title: "Remove" });
    this.errors = h("div", { class: "nbext-error", role: "alert" });
    this.head = h("div", { class: "nbl-head", onkeydown: (event) => this.key(event) }, this.not, this.summary, this.counted, this.remove);
    this.el = h("div", { class: "nbl-row" }, this.head, this.errors);
  }

  toggle() {
    const open = this.page.model.get("opened").includes(this.id);
    this.page.open(open ? [] : [this.id]);
    if (!open) this.focus();
  }

  key(event) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by && event.altKey) this.page.send("move", { id: this.id, by });
    else if (event.key === "Delete") this.page.send("remove", { id: this.id });
    else if (by) {
      const all = [...this.page.el.querySelectorAll(".nbl-summary")];
      all[all.indexOf(this.summary) + by]?.focus();
    } else return;
    event.preventDefault();
  }

  update(node) {
    this.not.setAttribute("aria-pressed", String(node.not));
    text(this.kind, node.label);
    text(this.words, node.words || (node.fields ? "…" : node.short));
    this.summary.title = `${node.label} ${node.words || node.short}`;
    this.not.setAttribute("aria-label", `NOT ${node.label} ${node.words}`);
    this.remove.setAttribute("aria-label", `Remove ${node.label} ${node.words}`);
    this.el.classList.toggle("nbl-wrong", node.errors.length > 0);
    const open = this.page.model.get("opened").includes(this.id);
    this.summary.setAttribute("aria-expanded", String(open));
    if (open && (!this.editor || this.asFields !== Boolean(node.fields))) this.build(node);
    if (!open && this.editor) {
      this.editor.remove();
      this.editor = this.fields = null;
    }
    for (const field of this.fields || []) {
      field.chain = node.fields?.chain;
      field.update(node.fields ? node.fields[field.spec.name] : node.json, node.errors);
    }
    const held = new Set((this.fields || []).map((one) => one.spec.name));
    text(this.errors, node.errors.filter((one) => !held.has(one.field)).map((one) => one.detail).join(" "));
  }

  build(node) {
    const { page, id } = this;
    this.editor?.remove();
    this.asFields = Boolean(node.fields);
    const specs = node.fields ? page.model.get("spec").conditions[node.key].fields : [{ name: "", label: "As JSON", shape: "json", help: "" }];
    this.fields = specs.map((spec) => new Field(page, id, spec));
    const act = (label, op, more) => press(label, () => page.send(op, { id, ...more }), { "data-op": op });
    const about = page.model.get("spec").conditions[node.key]?.help;
    this.editor = h("fieldset", { class: "nbl-editor", onkeydown: (event) => this.typed(event) },
      h("legend", { class: "nbl-unseen" }, node.label),
      about ? h("div", { class: "nbext-help" }, about) : null,
      h("div", { class: "nbl-fields" }, ...this.fields.map((one) => one.el)),
      h("div", { class: "nbl-actions" }, press("Done", () => this.close()), act("Or \u2026", "either"), act("Group", "wrap"),
        act("Duplicate", "duplicate"), act("Up", "move", { by: -1 }), act("Down", "move", { by: 1 })));
    this.el.append(this.editor);
  }

  typed(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey) return;
    const enters = event.key === "Enter" && event.target.matches("input");
    if (event.key !== "Escape" && !enters) return;
    event.preventDefault();
    this.close();
  }

  close() {
    this.page.open([]);
    this.summary.focus();
  }

  focus(keep, name) {
    if (keep || !this.fields) {
      this.summary.focus();
      return;
    }
    const named = name && this.fields.find((one) => one.spec.name === name);
    const empty = this.fields.find((one) => one.spec.required && !one.input.value);
    const next = this.fields.find((one) => !one.spec.required && one.input.localName !== "select");
    (named || empty || next || this.fields[0]).input.focus();
  }
}

class Field {
  constructor(page, id, spec) {
    Object.assign(this, { page, id, spec });
    const label = spec.label + (spec.required ? " *" : "");
    this.helpId = `nbl-${made++}`;
    this.help = h("div", { class: "nbext-help", title: spec.help, id: `${this.helpId}-help` }, spec.help);
    this.error = h("div", { class: "nbext-error", role: "alert", id: `${this.helpId}-error` });
    const keys = spec.shape === "pair" ? spec.keys : [""];
    this.inputs = Object.fromEntries(keys.map((key) => [key, this.made(key)]));
    this.input = this.inputs[keys[0]];
    const labels = keys.map((key) => h("label", { class: "nbl-labelled" }, h("span", { title: key ? `${label}, ${key}` : label }, key ? `${label}, ${key}` : label), this.inputs[key]));
    this.el = h("div", { class: `nbl-field nbl-is-${spec.shape}` }, h("div", { class: "nbl-pair" }, ...labels));
    if (spec.picks === "time") this.times(keys, label);
    if (["token", "collection", "segment", "list"].includes(spec.picks)) this.picks();
    this.el.append(this.help, this.error);
  }

  made(key) {
    const { spec } = this;
    const common = { "aria-describedby": `${this.helpId}-help ${this.helpId}-error` };
    if (["choice", "flag", "order", "several"].includes(spec.shape)) {
      const several = spec.shape === "several";
      const select = h("select", { ...common, multiple: several, onchange: () => this.sent() });
      select.append(...spec.choices.map(([value, said]) => h("option", { value }, said)));
      if (several) select.size = Math.min(4, spec.choices.length);
      return select;
    }
    const kind = spec.shape === "json" ? "textarea" : "input";
    const hint = key ? spec.examples[key] : spec.examples;
    const props = kind === "input" ? { type: "text", placeholder: typeof hint === "string" ? hint : "", title: typeof hint === "string" ? hint : null } : { rows: 5 };
    return h(kind, { ...common, ...props, autocomplete: "off", spellcheck: "false", "aria-required": spec.required ? "true" : null,
      oninput: () => this.page.later(() => this.sent()), onblur: () => this.page.flush() });
  }

  value() {
    if (this.spec.shape === "pair") return Object.fromEntries(Object.entries(this.inputs).map(([key, one]) => [key, one.value]));
    return this.spec.shape === "several" ? [...this.input.selectedOptions].map((one) => one.value) : this.input.value;
  }

  sent() {
    this.page.late = null;
    const { id, spec } = this;
    if (spec.shape === "json") this.page.send("json", { id, value: this.value() });
    else this.page.send("set", { id, field: spec.name, value: this.value() });
  }

  put(key, value) {
    this.inputs[key].value = value;
    this.sent();
  }

  times(keys, label) {
    for (const key of keys) {
      const presets = key ? [] : PRESETS.map(([value, said]) => press(said, () => this.put(key, value), { class: "nbl-button nbl-preset" }));
      const day = h("input", { type: "date", "aria-label": `${key ? `${label}, ${key}` : label}, as a date`, onchange: (event) => this.put(key, event.target.value) });
      this.el.append(h("div", { class: "nbl-presets" }, ...presets, day));
    }
  }

  picks() {
    const { page, spec, id } = this;
    // Of a list that is typed, the last word is searched, and a pick takes its place.
    const last = () => (spec.shape === "list" ? this.input.value.split(/[,\s]+/).pop() : this.input.value);
    const search = (done) => page.search([spec.picks], last(), this.chain, done);
    this.box = new Picker(page, this.input, search, (one) => {
      if (one.value.startsWith("$")) page.send("list", { id, value: one.value.slice(1) });
      else if (spec.shape === "list") this.put("", this.input.value.slice(0, this.input.value.length - last().length) + one.value);
      else this.put("", one.value);
    });
    this.el.append(this.box.list);
  }

  offer(choices) {
    const said = JSON.stringify(choices);
    if (this.offered === said) return;
    this.offered = said;
    this.input.replaceChildren(...choices.map(([value, words]) => h("option", { value }, words)));
  }

  update(shown, errors) {
    for (const [key, input] of Object.entries(this.inputs)) {
      const value = this.spec.shape === "pair" ? (shown || {})[key] || "" : shown ?? "";
      if (this.spec.shape === "several") {
        for (const option of input.options) option.selected = value.includes(option.value);
      } else if (document.activeElement !== input || input.localName === "select") {
        const known = input.localName !== "select" || [...input.options].some((one) => one.value === value);
        if (!known) input.append(h("option", { value }, value));
        if (input.value !== value) input.value = value;
      }
    }
    const wrong = errors.filter((one) => one.field === this.spec.name);
    text(this.error, wrong.map((one) => one.detail).join(" "));
    this.el.classList.toggle("nbl-wrong", wrong.length > 0);
    for (const [key, input] of Object.entries(this.inputs)) {
      const own = wrong.some((one) => !one.key || one.key === key || !this.inputs[one.key]);
      input.setAttribute("aria-invalid", String(own));
    }
  }
}

// A text input with the hits for what is typed below it: arrows choose, Enter picks, Escape closes.
class Picker {
  constructor(page, input, search, pick) {
    Object.assign(this, { input, search, pick, items: [], at: -1 });
    this.list = h("div", { role: "listbox", class: "nbl-options", hidden: true, id: `nbl-options-${made++}`, "aria-label": "Suggestions" });
    for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": this.list.id })) input.setAttribute(name, value);
    input.addEventListener("input", () => this.ask());
    input.addEventListener("focus", () => this.ask());
    input.addEventListener("blur", () => {
      this.wanted = false;
      if (page.pressed) document.addEventListener("pointerup", () => setTimeout(() => this.close(), 0), { once: true });
      else this.close();
    });
    input.addEventListener("keydown", (event) => this.key(event));
    // Else the input loses the focus, and with it the list, before the click.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  ask() {
    clearTimeout(this.timer);
    this.wanted = false;
    this.waits = true;
    this.before?.();
    this.timer = setTimeout(() => this.search((found) => this.show(found.found, found.error)), TYPING);
  }

  show(items, error) {
    this.waits = false;
    if (document.activeElement !== this.input) return;
    this.items = items;
    const rows = items.map((one, at) => h("div", { role: "option", class: "nbl-option", id: `${this.list.id}-${at}`, "aria-selected": "false",
      title: `${one.label} ${one.name || ""}`, onclick: () => this.take(at) },
      h("span", { class: "nbl-symbol" }, one.label), h("span", { class: "nbl-name" }, one.name || ""),
      one.verified ? h("span", { class: "nbext-mark nbext-mark-good" }, "verified") : null,
      one.spam ? h("span", { class: "nbext-mark nbext-mark-bad" }, "spam?") : null,
      one.kind === "token" || one.kind === "collection" ? h("span", { class: "nbl-of" }, one.kind) : null,
      one.holders ? h("span", { class: "nbl-holders" }, one.holders) : null));
    if (error) rows.push(h("div", { class: "nbl-option nbext-error", role: "option", "aria-disabled": "true" }, error));
    this.list.replaceChildren(...rows);
    this.list.hidden = rows.length === 0;
    this.input.setAttribute("aria-expanded", String(rows.length > 0));
    const typed = this.input.value.trim().toLowerCase();
    const same = items.findIndex((one) => one.label.toLowerCase() === typed);
    const begins = items.findIndex((one) => one.label.toLowerCase().startsWith(typed));
    this.move(!typed || !items.length ? -1 : same >= 0 ? same : Math.max(begins, 0));
    if (this.wanted && items.length) this.take(Math.max(this.at, 0));
    this.wanted = false;
  }

  move(at) {
    this.at = at;
    [...this.list.children].forEach((row, place) => row.setAttribute("aria-selected", String(place === at)));
    if (at < 0) this.input.removeAttribute("aria-activedescendant");
    else {
      this.input.setAttribute("aria-activedescendant", `${this.list.id}-${at}`);
      this.list.children[at]?.scrollIntoView({ block: "nearest" });
    }
  }

  take(at) {
    const one = this.items[at];
    this.close();
    if (one) this.pick(one);
  }

  close() {
    clearTimeout(this.timer);
    this.waits = false;
    this.list.hidden = true;
    this.items = [];
    this.list.replaceChildren();
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const open = !this.list.hidden;
    if (by && open) this.move((this.at + by + this.items.length) % this.items.length);
    else if (event.key === "Escape" && open) this.close();
    else if (event.key === "Enter" && this.input.value.trim() && this.waits) this.wanted = true;
    else if (event.key === "Enter" && open && this.at >= 0) this.take(this.at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// "+ Add": the conditions and groups, and the contracts that fit what is typed.
class Adder {
  constructor(page, into, top) {
    const { conditions, groups } = page.model.get("spec");
    const kinds = [...new Set(Object.values(conditions).flatMap((one) => one.fields).filter((one) => one.required).map((one) => one.picks))]
      .filter((kind) => kind === "token" || kind === "collection");
    const entries = [...Object.entries(conditions).map(([key, one]) => ({ key, label: one.label, name: one.help })),
      ...Object.entries(groups).map(([key, label]) => ({ key, label, name: "a group" }))];
    this.input = h("input", { type: "text", class: "nbl-add", autocomplete: "off", spellcheck: "false",
      "aria-label": top ? "+ Add" : "+ Add to this group", placeholder: "+ Add: symbol, condition, saved query",
      title: "Type a token's or a collection's symbol, a condition, or the name of a saved query" });
    const search = (done) => {
      const term = this.input.value.trim();
      const own = entries.filter((one) => one.label.toLowerCase().includes(term.toLowerCase()));
      if (!term) done({ found: own });
      else page.search([...kinds, "saved"], term, null, ({ found, error }) => done({ found: [...found, ...own], error }));
    };
    this.box = new Picker(page, this.input, search, (one) => {
      this.input.value = "";
      page.send("add", { into, ...(one.kind ? { key: "", kind: one.kind, value: one.value } : { key: one.key }) });
    });
    // What was not picked is no part of the query, and must not look like one.
    this.input.addEventListener("blur", () => { this.input.value = ""; });
    this.el = h("div", { class: "nbl-adder" }, this.input, this.box.list);
  }
}

export default {
  render({ model, el }) {
    const page = new Page(model, el);
    return () => page.end();
  },
};
