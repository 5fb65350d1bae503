// Puts the page together.

function modelOf(data) {
  const tensors = new Map();
  for (const [prefix, list] of [["in.", data.inputs], ["out.", data.outputs], ["at.", data.tensors], ["w.", data.weights]]) for (const t of list) tensors.set(prefix + t.field, t);
  const model = { kernels: new Map(data.kernels.map((k) => [k.name, k])), tensor: (name) => tensors.get(name), stepsOfKernel: new Map(), stepsOfNode: new Map(), readersOf: new Map(), writersOf: new Map() };
  const add = (map, key, i) => (map.has(key) ? map.get(key).push(i) : map.set(key, [i]));
  data.steps.forEach((s, i) => {
    if (s.kernel) add(model.stepsOfKernel, s.kernel, i);
    for (const n of s.nodes) add(model.stepsOfNode, n, i);
    for (const t of s.reads) add(model.readersOf, t, i);
    for (const t of s.writes) add(model.writersOf, t, i);
  });
  model.mostMacs = Math.max(1, ...data.kernels.map((k) => k.macs));
  model.totalMacs = data.steps.reduce((sum, s) => sum + Math.max(0, s.kernel ? model.kernels.get(s.kernel)?.macs || 0 : 0), 0);
  model.kernelTime = data.kernels.reduce((sum, k) => sum + (k.time_us || 0), 0) || 1;
  return model;
}

function cards(data) {
  const card = (title, value, note) => el("div", { class: "card" }, el("span", { class: "small muted" }, title), el("strong", {}, value), el("span", { class: "small muted" }, note));
  const m = data.memory;
  const ports = (list) => list.slice(0, 3).map((t) => el("span", { class: "port-line" }, t.name + " ", el("span", { class: "muted" }, typeText(t)))).concat(list.length > 3 ? [el("span", { class: "muted small" }, "and " + (list.length - 3) + " more")] : []);
  return [card("Steps", String(data.steps.length), plural(data.kernels.length, "distinct kernel")), card("Multiply-accumulates", count(data.macs), "a run"),
    data.times ? card("Time", time(data.times.run_us), "a run, measured") : null,
    card("Workspace", bytes(m.workspace_bytes), bytes(m.tensors_without_reuse_bytes) + " without reuse"), card("Weights", bytes(m.weights_bytes), plural(data.weights.length, "tensor")),
    el("div", { class: "card ports" }, el("span", { class: "small muted" }, "Inputs → outputs"), el("div", {}, ports(data.inputs)), el("div", { class: "outputs" }, ports(data.outputs)))].filter(Boolean);
}

function tabs(parts) {
  const list = document.getElementById("tabs"), panels = document.getElementById("panels"), buttons = [];
  const choose = (k, focus) => {
    parts.forEach((p, i) => {
      buttons[i].setAttribute("aria-selected", String(i === k));
      buttons[i].tabIndex = i === k ? 0 : -1;
      p.panel.classList.toggle("shown", i === k);
    });
    if (focus) buttons[k].focus();
    if (parts[k].shown) parts[k].shown();
  };
  parts.forEach((p, k) => {
    const button = el("button", { type: "button", role: "tab", id: "tab-" + p.key, "aria-controls": "panel-" + p.key, onclick: () => choose(k) }, p.title);
    button.addEventListener("keydown", (e) => {
      const to = { ArrowRight: (k + 1) % parts.length, ArrowLeft: (k + parts.length - 1) % parts.length, Home: 0, End: parts.length - 1 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      choose(to, true);
    });
    buttons.push(button);
    p.panel = el("section", { role: "tabpanel", id: "panel-" + p.key, "aria-labelledby": "tab-" + p.key, class: "panel" }, el("h2", { class: "print-only" }, p.title), p.content);
    list.append(button);
    panels.append(p.panel);
  });
  choose(0);
  return (key) => choose(parts.findIndex((p) => p.key === key));
}

function themes() {
  const button = document.getElementById("theme"), order = ["system", "light", "dark"];
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % order.length;
    if (at) document.documentElement.dataset.theme = order[at];
    else delete document.documentElement.dataset.theme;
    button.textContent = "Theme: " + order[at];
  });
}

function main() {
  const data = JSON.parse(document.getElementById("data").textContent), model = modelOf(data);
  document.getElementById("subtitle").textContent = [data.target === "cuda" ? "CUDA, " + data.cpu : "C, " + data.cpu, data.options.join(" "), data.nodes ? "from a model" : "from a package", data.version ? "tc-emit " + data.version : ""].filter(Boolean).join(" · ");
  document.getElementById("cards").append(...cards(data));
  let go = () => {};
  const graph = new GraphPanel(data, model), memory = new MemoryPanel(data);
  const kernels = new KernelPanel(data, model, (step) => (go("graph"), graph.goToStep(step)));
  graph.openKernel = (name) => (go("kernels"), kernels.open(name));
  const parts = [{ key: "graph", title: "Graph", content: graph.root }, { key: "kernels", title: "Kernels", content: kernels.root }, { key: "memory", title: "Memory", content: memory.root, shown: () => memory.draw() }];
  if (data.passes) parts.push({ key: "passes", title: "Passes", content: passesPanel(data) });
  parts.push({ key: "weights", title: "Weights", content: weightsPanel(data, model) });
  go = tabs(parts);
  themes();
  addEventListener("resize", () => memory.root.clientWidth && memory.draw());
  addEventListener("beforeprint", () => (memory.draw(), graph.fit()));
}

main();
