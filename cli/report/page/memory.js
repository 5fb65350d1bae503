// Which tensor lies where in the workspace, and when: time runs to the right, addresses upwards.

// From the first step that touches a tensor to the last. What a loop's body reads before it is written there, or what is
// touched inside and outside of it, lives as long as the whole loop.
function lifetimes(data) {
  const end = data.steps.map((_, i) => i);  // the last step inside of each
  for (let i = data.steps.length - 1; i >= 0; i--) if (data.steps[i].in !== undefined) end[data.steps[i].in] = Math.max(end[data.steps[i].in], end[i]);
  const loops = data.steps.map((s, i) => {
    const around = [];
    for (let at = s.in; at !== undefined; at = data.steps[at].in) if (data.steps[at].kind === "loop") around.push(at);
    return around;
  });
  const life = new Map();
  const touch = (t, i, writes) => {
    const l = life.get(t);
    if (!l) return life.set(t, { first: i, last: i, writer: writes ? i : -1, loops: loops[i], readFirst: !writes });
    l.first = Math.min(l.first, i);
    l.last = Math.max(l.last, i);
    if (writes && l.writer < 0) l.writer = i;
    const common = l.loops.filter((x) => loops[i].includes(x));
    for (const x of [...l.loops, ...loops[i]]) if (!common.includes(x)) l.first = Math.min(l.first, x), l.last = Math.max(l.last, end[x]);
    l.loops = common;
  };
  data.steps.forEach((s, i) => {
    for (const t of s.reads) if (t.startsWith("at.")) touch(t.slice(3), i, false);
    for (const t of s.writes) if (t.startsWith("at.")) touch(t.slice(3), i, true);
  });
  for (const l of life.values()) if (l.readFirst) for (const x of l.loops) l.first = Math.min(l.first, x), l.last = Math.max(l.last, end[x]);
  return life;
}

class MemoryPanel {
  constructor(data) {
    this.data = data;
    const life = lifetimes(data);
    this.tensors = data.tensors.map((t) => ({ ...t, ...(life.get(t.name) || { first: 0, last: -1, writer: -1 }) })).filter((t) => t.last >= 0 && t.bytes > 0).sort((a, b) => a.first - b.first || a.at - b.at);
    const m = data.memory;
    this.root = el("div", { class: "memory" },
      el("p", { class: "lead" }, "The workspace of one instance takes ", el("b", {}, bytes(m.workspace_bytes)), ". Tensors that do not live at the same time share memory: ", el("b", {}, bytes(m.tensors_bytes)), " instead of ", bytes(m.tensors_without_reuse_bytes), "; no plan could do with less than ", bytes(m.largest_live_set_bytes), "."),
      this.picture = svg("svg", { class: "plan", tabindex: "0", role: "application", "aria-label": "Memory plan. Left and right arrow keys go from tensor to tensor.", onkeydown: (e) => this.key(e) }),
      this.facts = el("p", { class: "facts", "aria-live": "polite" }, "Choose a tensor."),
      this.table());
    this.chosen = -1;
  }

  draw() {
    const width = Math.max(600, this.root.clientWidth || 1000), top = 64, left = 76, bottom = 34, height = 460;
    const steps = Math.max(1, this.data.steps.length), size = Math.max(1, ...this.tensors.map((t) => t.at + t.bytes));
    const sx = (width - left - 8) / steps, sy = (height - top - bottom) / size, floor = height - bottom;
    const live = new Array(steps).fill(0);
    const seen = new Set();
    for (const t of this.tensors) for (let i = t.first; i <= t.last; i++) {
      const key = i + ":" + t.at;
      if (!seen.has(key)) seen.add(key), (live[i] += t.bytes);
    }
    const most = Math.max(1, ...live), strip = 44;
    const area = "M" + left + "," + strip + live.map((b, i) => ` L${(left + i * sx).toFixed(1)},${(strip - (b / most) * 36).toFixed(1)} L${(left + (i + 1) * sx).toFixed(1)},${(strip - (b / most) * 36).toFixed(1)}`).join("") + ` L${left + steps * sx},${strip} z`;
    const grid = [0, 0.25, 0.5, 0.75, 1].map((f) => [svg("line", { class: "grid", x1: left, x2: width - 8, y1: floor - f * size * sy, y2: floor - f * size * sy }), svg("text", { class: "axis", x: left - 8, y: floor - f * size * sy + 4, "text-anchor": "end" }, bytes(Math.round(f * size)))]);
    const every = Math.max(1, Math.ceil(steps / 12)), ticks = this.data.steps.map((_, i) => i).filter((i) => i % every === 0).map((i) => svg("text", { class: "axis", x: left + (i + 0.5) * sx, y: floor + 18, "text-anchor": "middle" }, String(i)));
    this.boxes = this.tensors.map((t, k) => {
      const x = left + t.first * sx, w = Math.max(1.5, (t.last - t.first + 1) * sx), h = Math.max(1.5, t.bytes * sy), y = floor - t.at * sy - h, kind = t.writer >= 0 && this.data.steps[t.writer].kernel ? kindOf(this.data.steps[t.writer].kernel) : "port";
      const label = w > 46 && h > 13 ? svg("text", { class: "label", x: x + 6, y: y + Math.min(15, h / 2 + 4) }, t.name.length > (w - 10) / 6.8 ? t.name.slice(0, Math.max(1, Math.floor((w - 10) / 6.8) - 1)) + "…" : t.name) : null;
      return svg("g", { class: "tensor " + kind, "data-tensor": k, onclick: () => this.choose(k) }, svg("rect", { x: (x + 0.5).toFixed(1), y: y.toFixed(1), width: Math.max(1, w - 1).toFixed(1), height: h.toFixed(1), rx: Math.min(3, h / 4, w / 4) }), label, svg("title", {}, this.text(t)));
    });
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.replaceChildren(svg("text", { class: "axis", x: left - 8, y: 20, "text-anchor": "end" }, "alive"), svg("text", { class: "axis", x: left - 8, y: 34, "text-anchor": "end" }, bytes(most)), svg("path", { class: "live", d: area }), ...grid.flat(), ...ticks, svg("text", { class: "axis", x: width - 8, y: height - 2, "text-anchor": "end" }, "step"), ...this.boxes);
    if (this.chosen >= 0) this.boxes[this.chosen].classList.add("chosen");
  }

  text(t) {
    const writer = t.writer >= 0 ? this.data.steps[t.writer] : null;
    return `${t.name}: ${typeText(t)}, ${bytes(t.bytes)} at ${t.at}; alive from step ${t.first} to ${t.last}` + (writer ? `, made by ${writer.kernel || writer.kind}` : "");
  }

  choose(k) {
    if (this.chosen >= 0) this.boxes[this.chosen].classList.remove("chosen");
    this.chosen = k;
    this.boxes[k].classList.add("chosen");
    this.facts.textContent = this.text(this.tensors[k]) + ".";
  }

  key(e) {
    const n = this.tensors.length, to = { ArrowRight: Math.min(n - 1, this.chosen + 1), ArrowLeft: Math.max(0, this.chosen - 1), Home: 0, End: n - 1 }[e.key];
    if (to === undefined || !n) return;
    e.preventDefault();
    this.choose(to);
  }

  table() {
    const rows = this.tensors.map((t, k) => el("tr", {}, el("td", {}, el("button", { type: "button", class: "link", onclick: () => (this.choose(k), this.picture.scrollIntoView({ block: "nearest" })) }, t.name)), el("td", {}, typeText(t)), el("td", { class: "n" }, bytes(t.bytes)), el("td", { class: "n" }, String(t.at)), el("td", { class: "n" }, t.first + " – " + t.last)));
    return el("details", {}, el("summary", {}, "As a table: " + plural(rows.length, "tensor")), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["Tensor", "Type", "Bytes", "At", "Steps"].map((h, i) => el("th", { class: i > 1 ? "n" : "" }, h)))), el("tbody", {}, rows))));
  }
}
