// The graph: kernels with the edges between them, or the model's nodes; walked with the mouse or the arrow keys.

// { nodes: [{ title, sub, kind, share, tint, facts() }], edges: [{ from, to, name, why, fused, back }] }
function kernelView(data, model) {
  const nodes = [], edges = [], made = new Map(), later = new Map();
  const port = (t, what) => ({ title: t.name, sub: what + " · " + typeText(t), kind: "port", port: true, step: -1,
    facts: () => [["What", what + " of the model"], ["Type", typeText(t)], ["Bytes", bytes(t.bytes)]] });
  data.inputs.forEach((t, i) => made.set("in." + t.field, [nodes.push(port(t, "input")) - 1]));
  data.steps.forEach((s, i) => {
    const at = nodes.length, k = model.kernels.get(s.kernel);
    nodes.push(stepNode(data, model, s, i, k));
    for (const t of s.reads) {
      if (t.startsWith("w.")) continue;
      for (const from of made.get(t) || [])
        edges.push({ from, to: at, name: t, why: reasonOf(data, t, s, data.steps[nodes[from].step]) });
      if (!made.has(t)) later.set(t, [...(later.get(t) || []), at]);
    }
    if (s.in !== undefined && !edges.some((e) => e.to === at && nodes[e.from].inside === s.in))
      edges.push({ from: nodes.findIndex((n) => n.step === s.in), to: at, name: "", control: true });
    for (const t of s.writes) {
      // What the other branch of the same If wrote holds, too.
      const kept = (made.get(t) || []).filter((w) => s.branch && nodes[w].inside === s.in && nodes[w].branch !== s.branch);
      made.set(t, [...kept, at]);
      for (const reader of later.get(t) || []) edges.push({ from: at, to: reader, name: t, back: true });
      later.delete(t);
    }
  });
  data.outputs.forEach((t, i) => {
    const at = nodes.push(port(t, "output")) - 1, name = "out." + t.field;
    for (const from of made.get(name) || []) edges.push({ from, to: at, name });
  });
  return { nodes, edges };
}

function stepNode(data, model, s, i, k) {
  const result = s.writes.length ? model.tensor(s.writes[0]) : null, shape = result ? result.shape.join("×") || "scalar" : "";
  const title = k ? shortName(s.kernel) : s.kind === "copy" ? "copy" : s.kind === "loop" ? "loop" : s.kind === "if" ? "if" : "go on?";
  return { title, sub: [shape, k && k.macs > 0 ? count(k.macs) + (k.macs < 1000 ? " MAC" : "MAC") : ""].filter(Boolean).join(" · ") || s.kind, step: i, inside: s.in, branch: s.branch,
    kind: k ? kindOf(s.kernel) : s.kind === "copy" ? "move" : "port", share: k && data.macs > 0 ? k.macs / model.mostMacs : 0, facts: () => [
      ["Step", String(i) + (s.in === undefined ? "" : ", inside step " + s.in + (s.branch ? " (" + s.branch + ")" : ""))],
      s.kernel ? ["Kernel", s.kernel] : ["Kind", s.kind],
      s.nodes.length ? ["Nodes of the model", s.nodes.join(", ")] : null,
      k ? ["Schedule", k.schedule] : null,
      k && k.macs > 0 ? ["Multiply-accumulates", count(k.macs)] : null,
      k && k.bytes >= 0 ? ["Bytes of operands", bytes(k.bytes)] : null,
      k && k.floor_us > 0 ? ["Floor", time(k.floor_us)] : null,
      k && k.time_us > 0 ? ["Time of a call", time(k.time_us / k.timed_calls)] : null,
      s.note ? ["Note", s.note] : null].filter(Boolean) };
}

function reasonOf(data, tensor, step, writer) {
  if (!data.reasons || !writer) return "";
  for (const result of step.writes) if (data.reasons[tensor + " > " + result]) return data.reasons[tensor + " > " + result];
  return step.kind === "kernel" && writer.kind === "kernel" ? "made by a pass behind the fusion, or shared by a body of If, Loop or Scan" : "";
}

function modelView(data, model, kernels) {
  const stepsOf = stepsOfNodes(data, model), why = new Map();
  for (const e of kernels.edges) {
    const key = kernels.nodes[e.from].step + " " + kernels.nodes[e.to].step;
    if (e.why && !why.has(key)) why.set(key, e.why);
  }
  const edges = [];
  const nodes = data.nodes.map((n, i) => {
    const steps = stepsOf[i], kernel = steps.length ? data.steps[steps[steps.length - 1]].kernel : "";
    return { title: n.op, sub: n.name, kind: kernel ? kindOf(kernel) : "port", tint: steps.length ? steps[steps.length - 1] : -1, step: -1, steps, facts: () => [
      ["Operator", n.op], ["Name", n.name], ...n.outputs.map((o) => ["Result", o.name + (o.type ? ": " + o.type : "")]),
      ...n.attrs.map(([key, value]) => ["Attribute " + key, value]), n.bodies ? ["Bodies", String(n.bodies)] : null,
      ["Kernels", steps.length ? steps.map((s) => "step " + s + ": " + (data.steps[s].kernel || data.steps[s].kind)).join("\n") : "none: folded into others, or moves no data"]].filter(Boolean) };
  });
  data.nodes.forEach((n, i) => n.inputs.forEach((source) => {
    if (source.node < 0) return;
    const fused = stepsOf[i].some((s) => stepsOf[source.node].includes(s));
    const told = stepsOf[source.node].flatMap((a) => stepsOf[i].map((b) => why.get(a + " " + b))).find((w) => w);
    const gone = !stepsOf[i].length || !stepsOf[source.node].length;
    edges.push({ from: source.node, to: i, name: source.name, fused, why: fused ? "" : told || (gone ? "one of the two has no kernel" : "the two are in different kernels") });
  }));
  return { nodes, edges };
}

// The steps of each node: by its name, by the tensor that it makes, or, if it has no name, the one step that reads what is stored
// nowhere.
function stepsOfNodes(data, model) {
  const readers = data.nodes.map(() => []), stepsOf = new Array(data.nodes.length);
  data.nodes.forEach((n, i) => n.inputs.forEach((s) => s.node >= 0 && readers[s.node].push(i)));
  for (let i = data.nodes.length - 1; i >= 0; i--) {
    const n = data.nodes[i];
    let steps = [...n.origins.flatMap((o) => model.stepsOfNode.get(o) || []), ...n.outputs.flatMap((o) => model.writersOf.get(o.tensor) || [])];
    const unknown = !steps.length && !n.origins.length;
    if (unknown) steps = readers[i].flatMap((r) => stepsOf[r]);
    steps = [...new Set(steps)].sort((a, b) => a - b);
    stepsOf[i] = unknown && steps.length > 1 ? [] : steps;
  }
  return stepsOf;
}

// Room for the widest of the fonts that the page may get.
function boxSize(n) {
  return { w: Math.min(276, Math.max(110, 32 + Math.max(8.6 * n.title.length, 6.7 * n.sub.length))), h: n.port ? 38 : 46 };
}

class GraphPanel {
  constructor(data, model) {
    this.data = data;
    this.model = model;
    this.views = { kernels: kernelView(data, model) };
    if (data.nodes) this.views.nodes = modelView(data, model, this.views.kernels);
    this.root = el("div", { class: "graph" }, this.toolbar(), el("div", { class: "split" }, this.canvas(), this.aside = el("aside", { class: "details", "aria-live": "polite" })));
    this.show("kernels");
  }

  toolbar() {
    const choose = (key, text) => el("button", { type: "button", "data-view": key, "aria-pressed": "false", onclick: () => this.show(key) }, text);
    this.choices = [choose("kernels", "Kernels"), this.data.nodes ? choose("nodes", "Nodes of the model") : null].filter(Boolean);
    this.search = el("input", { type: "search", placeholder: "Find a node …", "aria-label": "Find a node", oninput: () => this.find(), onkeydown: (e) => e.key === "Enter" && this.findNext() });
    const zoom = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const legend = KIND_NAMES.map(([key, name]) => el("span", { class: "key" }, dot(key), name));
    return el("div", { class: "toolbar" }, el("div", { class: "segments", role: "group", "aria-label": "What is drawn" }, this.choices), this.search, this.found = el("span", { class: "muted small", role: "status" }),
      el("div", { class: "segments" }, zoom("−", "Zoom out", () => this.zoom(1 / 1.3)), zoom("+", "Zoom in", () => this.zoom(1.3)), zoom("Fit", "Show everything", () => this.fit())), el("div", { class: "legend" }, legend));
  }

  canvas() {
    this.svg = svg("svg", { class: "canvas", tabindex: "0", role: "application", "aria-label": "Graph. Arrow keys walk along the edges, plus and minus zoom, 0 shows everything.",
      onkeydown: (e) => this.key(e), onwheel: (e) => this.wheel(e), onpointerdown: (e) => this.grab(e), onpointermove: (e) => this.drag(e), onpointerup: () => (this.held = null), onpointercancel: () => (this.held = null) });
    return el("div", { class: "canvas-box" }, this.svg, this.hint = el("div", { class: "hint", "aria-hidden": "true" }));
  }

  show(key) {
    this.view = this.views[key];
    this.choices.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.view === key)));
    const v = this.view;
    this.selected = -1;
    if (v.nodes.length > 4000) {
      this.svg.replaceChildren(svg("text", { x: 20, y: 30, class: "title" }, plural(v.nodes.length, "node") + ": too many to draw."));
      this.layout = null;
    } else {
      if (!v.layout) v.layout = layoutGraph({ sizes: v.nodes.map((n) => boxSize(n)), edges: v.edges });
      this.layout = v.layout;
      this.draw();
    }
    this.details(-1);
    requestAnimationFrame(() => this.home());
  }

  draw() {
    const { nodes, edges, layout } = this.view;
    this.edgeLines = edges.map((e, k) => this.edgeLine(e, layout.paths[k]));
    this.boxes = nodes.map((n, i) => this.box(n, i));
    const arrow = (id) => svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,1 L7,4 L0,7 z" }));
    this.svg.replaceChildren(svg("defs", {}, arrow("arrow")), this.world = svg("g", {}, svg("g", {}, this.edgeLines), svg("g", {}, this.boxes)));
  }

  edgeLine(e, points) {
    let d = "M" + points[0].map((v) => v.toFixed(1)).join(",");
    if (e.back) {
      const [a, b] = points, side = Math.max(a[0], b[0]) + 160;
      d += ` C${side},${a[1] + 60} ${side},${b[1] - 60} ${b[0]},${b[1]}`;
    } else {
      for (let i = 1; i < points.length; i++) {
        const [x0, y0] = points[i - 1], [x1, y1] = points[i], bend = y1 > y0 ? (y1 - y0) * 0.45 : 50;
        d += ` C${x0.toFixed(1)},${(y0 + bend).toFixed(1)} ${x1.toFixed(1)},${(y1 - bend).toFixed(1)} ${x1.toFixed(1)},${y1.toFixed(1)}`;
      }
    }
    const line = svg("path", { d, class: "edge" + (e.fused ? " fused" : "") + (e.control ? " control" : "") + (points.some((p, i) => i > 0 && p[1] < points[i - 1][1]) ? " turn" : "") + (e.back ? " back" : ""), "marker-end": "url(#arrow)" });
    line.append(svg("title", {}, this.edgeText(e)));
    return line;
  }

  edgeText(e) {
    if (e.control) return "runs inside";
    const t = this.model.tensor(e.name);
    return e.name.replace(/^(at|in|out)\./, "") + (t ? ": " + typeText(t) + ", " + bytes(t.bytes) : "") + (e.fused ? "\nstays inside a kernel" : "") + (e.why && !e.fused ? "\nnot fused: " + e.why : "");
  }

  box(n, i) {
    const { x, y } = this.view.layout, { w, h } = boxSize(n);
    const clip = (text, room) => (text.length > room ? text.slice(0, room - 1) + "…" : text);
    const g = svg("g", { class: "node " + n.kind + (n.port ? " port-box" : ""), transform: `translate(${(x[i] - w / 2).toFixed(1)},${(y[i] - h / 2).toFixed(1)})`, "data-node": i, id: "node-" + i, role: "img",
      "aria-label": n.title + ", " + n.sub, onclick: () => this.select(i, false) },
      svg("rect", { class: "body", width: w, height: h, rx: n.port ? 19 : 7 }), n.port ? null : svg("rect", { class: "stripe", x: 0, y: 7, width: 4, height: h - 14, rx: 2 }),
      svg("text", { class: "title", x: n.port ? w / 2 : 14, y: n.port ? 16 : 19, "text-anchor": n.port ? "middle" : "start" }, clip(n.title, 28)),
      svg("text", { class: "sub", x: n.port ? w / 2 : 14, y: n.port ? 29.5 : 34, "text-anchor": n.port ? "middle" : "start" }, clip(n.sub, 36)),
      n.share > 0.002 ? svg("rect", { class: "share", x: 14, y: h - 6, width: Math.max(2, (w - 28) * n.share).toFixed(1), height: 2.5, rx: 1.2 }) : null);
    if (n.tint >= 0) g.querySelector(".body").style.setProperty("--tint", `hsl(${(n.tint * 67) % 360} 70% 60%)`);
    return g;
  }

  // Where the picture begins: all of it if it can be read then, else its top.
  home() {
    if (!this.layout) return;
    const box = this.svg.getBoundingClientRect();
    this.fit();
    if (this.at.k >= 0.5) return;
    const k = Math.min(0.85, Math.max(0.5, (box.width - 48) / this.layout.width)), { x, y } = this.layout, top = this.view.nodes.map((_, i) => i).sort((a, b) => y[a] - y[b] || x[a] - x[b])[0];
    this.at = { k, x: this.layout.width * k < box.width ? (box.width - this.layout.width * k) / 2 : Math.min(24, box.width / 2 - x[top] * k), y: 24 };
    this.move();
  }

  fit() {
    if (!this.layout) return;
    const box = this.svg.getBoundingClientRect(), { width, height } = this.layout;
    const k = Math.min(1.15, (box.width - 48) / (width || 1), (box.height - 48) / (height || 1));
    this.at = { k: Math.max(k, 0.02), x: (box.width - width * k) / 2, y: Math.max(24, (box.height - height * k) / 2) };
    this.move();
  }

  move() {
    this.world.setAttribute("transform", `translate(${this.at.x.toFixed(2)},${this.at.y.toFixed(2)}) scale(${this.at.k.toFixed(4)})`);
    this.svg.classList.toggle("far", this.at.k < 0.35);
  }

  zoom(factor, cx, cy) {
    if (!this.layout) return;
    const box = this.svg.getBoundingClientRect(), k = Math.min(4, Math.max(0.02, this.at.k * factor));
    cx = cx === undefined ? box.width / 2 : cx;
    cy = cy === undefined ? box.height / 2 : cy;
    this.at = { k, x: cx - ((cx - this.at.x) * k) / this.at.k, y: cy - ((cy - this.at.y) * k) / this.at.k };
    this.move();
  }

  wheel(e) {
    e.preventDefault();
    const box = this.svg.getBoundingClientRect();
    if (e.ctrlKey || e.metaKey || !e.shiftKey) this.zoom(Math.exp(-e.deltaY * 0.0016), e.clientX - box.left, e.clientY - box.top);
  }

  grab(e) {
    if (e.button !== 0 || !this.layout) return;
    this.held = { x: e.clientX - this.at.x, y: e.clientY - this.at.y };
    if (!e.target.closest(".node")) this.svg.setPointerCapture(e.pointerId);
  }

  drag(e) {
    if (!this.held || !(e.buttons & 1)) return;
    this.at.x = e.clientX - this.held.x;
    this.at.y = e.clientY - this.held.y;
    this.move();
  }

  key(e) {
    const act = { "+": () => this.zoom(1.3), "=": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3), 0: () => this.fit(), Escape: () => this.select(-1),
      ArrowDown: () => this.walk("to"), ArrowUp: () => this.walk("from"), ArrowRight: () => this.aside_step(1), ArrowLeft: () => this.aside_step(-1), Home: () => this.select(0, true), End: () => this.select(this.view.nodes.length - 1, true) }[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey || !this.layout) return;
    e.preventDefault();
    act();
  }

  walk(side) {
    if (this.selected < 0) return this.select(0, true);
    const other = side === "to" ? "from" : "to", near = this.view.edges.filter((e) => e[other] === this.selected && !e.back).map((e) => e[side]);
    if (near.length) this.select(near[0], true);
  }

  // The next node of the same row.
  aside_step(by) {
    if (this.selected < 0) return this.select(0, true);
    const { x, y } = this.layout, here = this.selected;
    const row = this.view.nodes.map((_, i) => i).filter((i) => Math.abs(y[i] - y[here]) < 1).sort((a, b) => x[a] - x[b]);
    const next = row[row.indexOf(here) + by];
    if (next !== undefined) this.select(next, true);
  }

  select(i, bring) {
    this.selected = i;
    this.svg.querySelectorAll(".chosen, .near").forEach((n) => n.classList.remove("chosen", "near"));
    this.svg.classList.toggle("has-choice", i >= 0);
    if (i >= 0) {
      this.boxes[i].classList.add("chosen");
      this.view.edges.forEach((e, k) => {
        if (e.from !== i && e.to !== i) return;
        this.edgeLines[k].classList.add("near");
        this.boxes[e.from === i ? e.to : e.from].classList.add("near");
      });
      if (bring) this.bring(i);
    }
    this.details(i);
  }

  bring(i) {
    const box = this.svg.getBoundingClientRect(), px = this.layout.x[i] * this.at.k + this.at.x, py = this.layout.y[i] * this.at.k + this.at.y;
    if (this.at.k < 0.5) this.at.k = 0.8;
    else if (px > 120 && px < box.width - 120 && py > 60 && py < box.height - 60) return;
    this.at.x = box.width / 2 - this.layout.x[i] * this.at.k;
    this.at.y = box.height / 2 - this.layout.y[i] * this.at.k;
    this.move();
  }

  details(i) {
    const { nodes, edges } = this.view;
    this.aside.scrollTop = 0;
    if (i < 0)
      return this.aside.replaceChildren(el("h2", {}, plural(nodes.length, "node") + ", " + plural(edges.length, "edge")), el("p", { class: "muted" }, "Choose a node to see what it computes, what it reads, and why it is no part of its neighbours' kernels."),
        el("p", { class: "muted small" }, "Drag to move, scroll to zoom. With the keyboard: arrow keys walk along the edges and rows, + and − zoom, 0 shows everything."));
    const n = nodes[i];
    const list = (title, side) => {
      const other = side === "from" ? "to" : "from", found = edges.filter((e) => e[other] === i);
      if (!found.length) return null;
      return [el("h3", {}, title), el("ul", { class: "links" }, found.map((e) => el("li", {}, el("button", { type: "button", class: "link", onclick: () => this.select(e[side], true) }, dot(nodes[e[side]].kind), nodes[e[side]].title),
        el("span", { class: "muted small" }, this.edgeText(e).split("\n")[0]), e.fused ? el("span", { class: "why fused" }, "stays inside the kernel") : e.why ? el("span", { class: "why" }, "Not fused: " + e.why + ".") : null)))];
    };
    const weights = n.step >= 0 ? this.data.steps[n.step].reads.filter((t) => t.startsWith("w.")) : [];
    this.aside.replaceChildren(el("h2", {}, dot(n.kind), n.title), el("dl", {}, n.facts().map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])),
      n.step >= 0 && this.data.steps[n.step].kernel ? el("p", {}, el("button", { type: "button", class: "quiet", onclick: () => this.openKernel(this.data.steps[n.step].kernel) }, "Source of the kernel")) : "",
      ...(n.steps && n.steps.length ? [el("p", {}, n.steps.map((s) => el("button", { type: "button", class: "quiet", onclick: () => this.goToStep(s) }, "Show step " + s)))] : []),
      ...[list("Reads", "from"), list("Read by", "to")].flat().filter(Boolean),
      ...(weights.length ? [el("h3", {}, "Weights"), el("ul", { class: "links" }, weights.map((w) => el("li", { class: "small" }, w.slice(2) + (this.model.tensor(w) ? ": " + typeText(this.model.tensor(w)) : ""))))] : []));
  }

  goToStep(s) {
    this.show("kernels");
    requestAnimationFrame(() => requestAnimationFrame(() => this.select(this.view.nodes.findIndex((n) => n.step === s), true)));
  }

  find() {
    const word = this.search.value.toLowerCase();
    this.hits = this.view.nodes.map((n, i) => i).filter((i) => word && [this.view.nodes[i].title, this.view.nodes[i].sub, ...this.view.nodes[i].facts().map((f) => f[1])].some((t) => t.toLowerCase().includes(word)));
    this.boxes.forEach((b) => b.classList.remove("hit"));
    this.hits.forEach((i) => this.boxes[i].classList.add("hit"));
    this.found.textContent = word ? plural(this.hits.length, "hit") + (this.hits.length ? ", Enter goes on" : "") : "";
    this.next = 0;
  }

  findNext() {
    if (this.hits && this.hits.length) this.select(this.hits[this.next++ % this.hits.length], true);
  }
}
