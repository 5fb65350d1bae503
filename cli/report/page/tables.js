// Tables of kernels, weights and passes.

class KernelPanel {
  constructor(data, model, openStep) {
    this.data = data;
    this.model = model;
    this.openStep = openStep;
    const floored = data.kernels.some((k) => k.floor_us > 0), compared = data.kernels.some((k) => k.floor_share > 0);
    this.columns = [
      ["Kernel", (r) => r.k.name, (r) => this.nameCell(r)],
      ["Calls", (r) => r.calls, (r) => String(r.calls), "n"],
      ["MACs", (r) => r.macs, (r) => (r.macs > 0 ? count(r.macs) : "–"), "n"],
      data.times ? null : ["Share of MACs", (r) => r.macs, (r) => [bar(r.macs / (model.totalMacs || 1), kindOf(r.k.name)), el("span", { class: "small" }, percent(r.macs / (model.totalMacs || 1)))], "share"],
      ["Bytes", (r) => r.bytes, (r) => (r.bytes >= 0 ? bytes(r.bytes) : "–"), "n"],
      ["MACs per byte", (r) => r.macs / (r.bytes || 1), (r) => (r.macs > 0 && r.bytes > 0 ? (r.macs / r.bytes).toFixed(r.macs < r.bytes ? 2 : 1) : "–"), "n"],
      floored ? ["Floor", (r) => r.k.floor_us * r.calls, (r) => (r.k.floor_us > 0 ? time(r.k.floor_us * r.calls) : "–"), "n"] : null,
      data.times ? ["Time", (r) => r.k.time_us || 0, (r) => (r.k.time_us > 0 ? time(r.k.time_us) : "–"), "n"] : null,
      data.times ? ["Share of time", (r) => r.k.time_us || 0, (r) => [bar((r.k.time_us || 0) / model.kernelTime, kindOf(r.k.name)), el("span", { class: "small" }, percent((r.k.time_us || 0) / model.kernelTime))], "share"] : null,
      compared ? ["Floor of time", (r) => r.k.floor_share || 0, (r) => (r.k.floor_share > 0 ? (100 * r.k.floor_share).toFixed(0) + " %" : "–"), "n"] : null,
      ["Schedule", (r) => r.k.schedule, (r) => r.k.schedule, "wide"],
    ].filter(Boolean);
    this.rows = data.kernels.map((k, order) => {
      const steps = model.stepsOfKernel.get(k.name) || [];
      return { k, order, steps, calls: steps.length, macs: Math.max(0, k.macs) * steps.length, bytes: k.bytes < 0 ? -1 : k.bytes * steps.length, open: false };
    });
    this.sorted = { column: -1, down: false };
    this.root = el("div", {}, el("p", { class: "lead" }, plural(data.kernels.length, "distinct kernel") + " for " + plural(data.steps.filter((s) => s.kernel).length, "call") + ". MACs and bytes are those of all calls of one run, each branch and each loop counted once; bytes are the sizes of the operands.", floorText(data, floored), timesText(data)),
      el("div", { class: "scroll" }, el("table", { class: "kernels" }, this.head = el("thead"), this.body = el("tbody"))));
    this.draw();
  }

  draw() {
    this.head.replaceChildren(el("tr", {}, this.columns.map(([title, , , style], c) => el("th", { class: style, scope: "col", "aria-sort": this.sorted.column === c ? (this.sorted.down ? "descending" : "ascending") : "none" },
      el("button", { type: "button", onclick: () => this.sort(c) }, title, el("span", { class: "arrow", "aria-hidden": "true" }, this.sorted.column === c ? (this.sorted.down ? " ↓" : " ↑") : ""))))));
    const rows = this.rows.slice(), column = this.columns[this.sorted.column];
    if (column) rows.sort((a, b) => {
      const x = column[1](a), y = column[1](b), order = typeof x === "string" ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
      return (this.sorted.down ? -order : order) || a.order - b.order;
    });
    this.body.replaceChildren(...rows.flatMap((r) => [
      el("tr", { id: "kernel-" + r.order }, this.columns.map(([, , show, style]) => el("td", { class: style }, show(r)))),
      r.open ? el("tr", { class: "more" }, el("td", { colspan: this.columns.length }, this.more(r))) : null].filter(Boolean)));
  }

  nameCell(r) {
    return el("button", { type: "button", class: "link name", "aria-expanded": String(r.open), onclick: () => this.toggle(r) }, el("span", { class: "twist", "aria-hidden": "true" }, r.open ? "▾" : "▸"), dot(kindOf(r.k.name)), r.k.name);
  }

  toggle(r) {
    r.open = !r.open;
    this.draw();
    document.getElementById("kernel-" + r.order).querySelector("button").focus();
  }

  sort(c) {
    this.sorted = { column: c, down: this.sorted.column === c ? !this.sorted.down : c > 0 && c < this.columns.length - 1 };
    this.draw();
    this.head.querySelectorAll("button")[c].focus();
  }

  open(name) {
    const r = this.rows.find((row) => row.k.name === name);
    if (!r) return;
    r.open = true;
    this.draw();
    document.getElementById("kernel-" + r.order).scrollIntoView({ block: "start" });
    document.getElementById("kernel-" + r.order).querySelector("button").focus();
  }

  more(r) {
    return el("div", { class: "kernel-more" },
      el("div", { class: "kernel-facts" }, el("h3", {}, "Schedule"), el("p", {}, r.k.schedule), r.k.steps.length ? el("ol", {}, r.k.steps.map((s) => el("li", {}, el("code", {}, s)))) : "",
        el("h3", {}, "Called by"), el("ul", { class: "links" }, r.steps.slice(0, 60).map((s) => el("li", {}, el("button", { type: "button", class: "link", onclick: () => this.openStep(s) }, "step " + s), el("span", { class: "muted small" }, this.data.steps[s].nodes.join(", ")))))),
      r.k.text ? el("pre", { tabindex: "0", "aria-label": "Source of " + r.k.name }, el("code", {}, ...coloured(r.k.text))) : el("p", { class: "muted" }, "The text stands in the package's one file."));
  }
}

// What the column of floors means, or why there is none.
function floorText(data, floored) {
  if (floored) return " The floor is what " + (data.target === "cuda" ? "a card of " + data.cpu : "one thread of " + data.cpu) + " takes at least for all calls.";
  return data.target === "c" ? " Floors are those of a processor, which --cpu names." : "";
}

function timesText(data) {
  const t = data.times;
  if (!t) return "";
  const threads = t.threads > 0 ? " on " + plural(t.threads, "thread") : "";
  return " Measured in " + plural(t.runs, "run") + threads + ": " + time(t.run_us) + " a run" + (t.other_us > 0 ? ", of which " + time(t.other_us) + " are no kernels" : "") + ".";
}

const TOKENS = /(\/\*[\s\S]*?\*\/|\/\/[^\n]*)|(^#[^\n]*)|\b(void|const|int|for|if|else|return|static|float|double|while|restrict|unsigned|char|do|TC_RESTRICT|TC_UNROLL|tc_vf|tc_vi|u?int\d+_t|__global__|__restrict__|__shared__|bool)\b|\b(\d[\w.]*)/gm;

// C as spans: comments, keywords, numbers.
function coloured(text) {
  const parts = [];
  let at = 0;
  for (const m of text.matchAll(TOKENS)) {
    if (m.index > at) parts.push(text.slice(at, m.index));
    parts.push(el("span", { class: m[1] ? "c-note" : m[2] ? "c-include" : m[3] ? "c-word" : "c-number" }, m[0]));
    at = m.index + m[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

function weightsPanel(data, model) {
  const layers = new Map();
  data.weights.forEach((w) => {
    const s = (model.readersOf.get("w." + w.name) || [])[0], key = s === undefined ? "read by no step" : data.steps[s].nodes.join(", ") || "step " + s;
    if (!layers.has(key)) layers.set(key, { key, step: s, weights: [], bytes: 0 });
    const layer = layers.get(key);
    layer.weights.push(w);
    layer.bytes += w.bytes;
  });
  const list = [...layers.values()].sort((a, b) => (a.step ?? 1e9) - (b.step ?? 1e9)), total = list.reduce((s, l) => s + l.bytes, 0), most = Math.max(1, ...list.map((l) => l.bytes));
  const kind = (l) => (l.step === undefined || !data.steps[l.step].kernel ? "port" : kindOf(data.steps[l.step].kernel));
  return el("div", {}, el("p", { class: "lead" }, plural(data.weights.length, "tensor") + ", ", el("b", {}, bytes(total)), ", by the first step that reads them, as they are stored."),
    el("div", { class: "weights" }, list.map((l) => el("details", {}, el("summary", {}, el("span", { class: "layer" }, dot(kind(l)), l.key), bar(l.bytes / most, kind(l)), el("span", { class: "n" }, bytes(l.bytes)), el("span", { class: "n muted small" }, percent(l.bytes / (total || 1)))),
      el("table", {}, el("tbody", {}, l.weights.map((w) => el("tr", {}, el("td", {}, w.name), el("td", {}, typeText(w)), el("td", { class: "n" }, bytes(w.bytes)), el("td", { class: "n muted" }, w.at < 0 ? "a table of the source" : "at " + w.at)))))))));
}

function passesPanel(data) {
  const most = Math.max(1, ...data.passes.map((p) => Math.max(p.before, p.after)));
  const signed = (n) => (n > 0 ? "+" : "−") + Math.abs(n);
  return el("div", {}, el("p", { class: "lead" }, data.passes.filter((p) => p.changed).length + " of " + data.passes.length + " passes changed the graph, from " + (data.passes.length ? data.passes[0].before : 0) + " nodes to " + (data.passes.length ? data.passes[data.passes.length - 1].after : 0) + "."),
    el("ol", { class: "passes" }, data.passes.map((p) => el("li", { class: p.changed ? "" : "idle" }, el("details", {},
      el("summary", {}, el("span", { class: "pass-name" }, el("code", {}, p.name), el("span", { class: "muted small" }, p.summary)), bar(p.after / most, "sum"), el("span", { class: "n" }, plural(p.after, "node")), el("span", { class: "n small" }, p.after !== p.before ? signed(p.after - p.before) : p.changed ? "edited" : "no change")),
      p.ops.length ? el("p", { class: "chips" }, p.ops.map(([op, n]) => el("span", { class: "chip " + (n > 0 ? "plus" : "minus") }, signed(n) + " " + op))) : el("p", { class: "muted small" }, p.changed ? "The same operators; attributes, types or edges changed." : "Nothing changed."),
      p.gone.length ? el("p", { class: "small" }, el("b", {}, "Gone: "), p.gone.join(", ") + (p.gone.length === 12 ? ", …" : "")) : "", p.fresh.length ? el("p", { class: "small" }, el("b", {}, "New: "), p.fresh.join(", ") + (p.fresh.length === 12 ? ", …" : "")) : "")))));
}
