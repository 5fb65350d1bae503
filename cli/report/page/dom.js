// Elements and numbers. Text reaches the page as text only, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fillIn(node, attrs, children) {
  for (const [key, value] of Object.entries(attrs || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

// el("p", { class: "muted" }, "text", otherElement)
function el(tag, attrs, ...children) {
  return fillIn(document.createElement(tag), attrs, children);
}

function svg(tag, attrs, ...children) {
  return fillIn(document.createElementNS(SVG, tag), attrs, children);
}

function count(n) {
  if (n < 1000) return String(n);
  const units = ["", " k", " M", " G", " T", " P"];
  let unit = 0;
  while (n >= 999.5 && unit < 5) n /= 1000, unit++;
  return (n < 100 ? n.toFixed(1).replace(/\.0$/, "") : n.toFixed(0)) + units[unit];
}

function bytes(n) {
  if (n < 10240) return n + " B";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < 4) n /= 1024, unit++;
  return (n < 100 ? n.toFixed(1).replace(/\.0$/, "") : n.toFixed(0)) + " " + units[unit];
}

// Of microseconds, with two digits at least.
function time(us) {
  const [n, unit] = us < 1 ? [us * 1e3, "ns"] : us < 1e4 ? [us, "µs"] : us < 1e7 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
  return n.toFixed(n < 10 ? 1 : 0) + " " + unit;
}

function typeText(t) {
  return t.dtype + "[" + t.shape.join(", ") + "]";
}

function plural(n, word) {
  return n + " " + word + (n === 1 ? "" : "s");
}

// What a kernel mostly does, by the words of its name: its colour everywhere on the page.
const KINDS = [
  ["sum", "Sums of products", /(^|_)(conv|conv\dd|matmul|gemm|dense|attention|inverted|lstm|gru|rnn|einsum)/],
  ["window", "Windows", /(^|_)\w*pool/],
  ["rows", "Rows", /(^|_)(softmax|log_softmax|reduce|layer|mean|sum|norm|max_\d|arg|cumsum|scan|top)/],
  ["move", "Moves", /^(transpose|pad|slice|concat|gather|resize|copy|reshape|expand|tile|split|depth|space|scatter|flatten)/],
];

function kindOf(kernel) {
  const found = KINDS.find(([, , pattern]) => pattern.test(kernel));
  return found ? found[0] : "element";
}

const KIND_NAMES = [...KINDS.map(([key, name]) => [key, name]), ["element", "Elementwise"], ["port", "Inputs, outputs, control"]];

// "conv2d_bias_relu" of "conv2d_bias_relu_10x10_8x8x16_k3_0084".
function shortName(kernel) {
  const words = kernel.split("_"), end = words.findIndex((w, i) => i > 0 && (/^\d+(x\d+)+$/.test(w) || (/^\d+$/.test(w) && i + 1 < words.length)));
  return (end < 0 ? words.slice(0, -1) : words.slice(0, end)).join("_") || kernel;
}

function dot(kind) {
  return el("span", { class: "dot " + kind, "aria-hidden": "true" });
}

function bar(share, kind) {
  const fill = el("span", { class: "fill " + (kind || "") });
  fill.style.width = (100 * Math.min(1, share || 0)).toFixed(2) + "%";
  return el("span", { class: "bar", "aria-hidden": "true" }, fill);
}

function percent(share) {
  return share >= 0.0005 ? (100 * share).toFixed(1) + " %" : share > 0 ? "< 0.1 %" : "0";
}
