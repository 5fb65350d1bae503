"use strict";
// A layered drawing of a graph: nodes in rows, edges downwards. Loops only, and the same picture every time.

// graph: { sizes: [{ w, h }], edges: [{ from, to }] }; an edge goes forward when from < to, others do not shape the picture.
// Returns { x, y (centres of nodes), paths (of edges: lists of points), width, height }.
function layoutGraph(graph) {
  const gap = { x: 22, y: 54 };
  const forward = graph.edges.map((e, k) => ({ ...e, k })).filter((e) => e.from < e.to);
  const layer = layersOf(graph.sizes.length, forward);
  const net = withDummies(graph.sizes, forward, layer);
  const rows = orderRows(net);
  const y = rowPositions(net, rows, gap.y);
  const x = columnPositions(net, rows, gap.x);
  const paths = graph.edges.map((e) => [[x[e.from], y[e.from] + graph.sizes[e.from].h / 2], [x[e.to], y[e.to] - graph.sizes[e.to].h / 2]]);
  net.chains.forEach((chain) => {
    const points = chain.dummies.map((d) => [x[d], y[d]]);
    paths[chain.k].splice(1, 0, ...points);
  });
  return inColumns(net, rows, x, y, paths);
}

// A tall drawing is cut into columns side by side, like a text. Moves x, y and paths.
function inColumns(net, rows, x, y, paths) {
  const extent = (from, to) => {
    const e = { left: Infinity, right: -Infinity, top: Infinity, bottom: 0 };
    for (let l = from; l < to; l++) for (const v of rows[l]) {
      e.left = Math.min(e.left, x[v] - net.sizes[v].w / 2);
      e.right = Math.max(e.right, x[v] + net.sizes[v].w / 2);
      e.top = Math.min(e.top, y[v] - net.sizes[v].h / 2);
      e.bottom = Math.max(e.bottom, y[v] + net.sizes[v].h / 2);
    }
    return e.right < e.left ? { left: 0, right: 0, top: 0, bottom: 0 } : e;
  };
  const gap = 110, all = extent(0, rows.length), wide = all.right - all.left;
  const columns = rows.length < 24 ? 1 : Math.max(1, Math.round(Math.sqrt((1.5 * all.bottom) / (wide + gap)))), each = Math.ceil(rows.length / columns);
  const shift = [];  // of each row: [dx, dy]
  let at = 0, width = 0, height = 0;
  for (let from = 0; from < rows.length; from += each) {
    const to = Math.min(rows.length, from + each), e = extent(from, to);
    for (let l = from; l < to; l++) shift[l] = [at - e.left, -e.top];
    width = at + e.right - e.left;
    height = Math.max(height, e.bottom - e.top);
    at = width + gap;
  }
  const rowAt = new Map();  // by the unmoved y of what stands in it
  net.layer.forEach((l, v) => { for (const h of [-net.sizes[v].h / 2, 0, net.sizes[v].h / 2]) rowAt.set((y[v] + h).toFixed(2), l); });
  for (const path of paths) for (const p of path) {
    const [dx, dy] = shift[rowAt.get(p[1].toFixed(2))];
    p[0] += dx;
    p[1] += dy;
  }
  for (let v = 0; v < x.length; v++) x[v] += shift[net.layer[v]][0], y[v] += shift[net.layer[v]][1];
  return { x, y, paths, width, height };
}

// The longest way from a source; then whatever reads no more than it is read by goes down to its readers, so that what is made of
// constants stands where it is used.
function layersOf(n, edges) {
  const layer = new Array(n).fill(0), fed = new Array(n).fill(0), out = Array.from({ length: n }, () => []);
  for (const e of edges) out[e.from].push(e.to), fed[e.to]++;
  for (let v = 0; v < n; v++) for (const w of out[v]) layer[w] = Math.max(layer[w], layer[v] + 1);
  for (let v = n - 1; v >= 0; v--) if (out[v].length && fed[v] <= out[v].length) layer[v] = out[v].reduce((least, w) => Math.min(least, layer[w]), Infinity) - 1;
  const top = layer.reduce((least, l) => Math.min(least, l), Infinity);
  return layer.map((l) => l - top);
}

// Long edges become chains of points of no size, one a row; where there would be too many, they stay straight.
function withDummies(sizes, edges, layer) {
  const net = { sizes: sizes.slice(), layer: layer.slice(), up: sizes.map(() => []), down: sizes.map(() => []), chains: [], real: sizes.length };
  const total = edges.reduce((sum, e) => sum + Math.max(0, layer[e.to] - layer[e.from] - 1), 0);
  const longest = total <= 6000 ? Infinity : 12;
  const join = (a, b) => { net.down[a].push(b); net.up[b].push(a); };
  for (const e of edges) {
    const span = layer[e.to] - layer[e.from];
    if (span - 1 > longest) continue;
    const chain = { k: e.k, dummies: [] };
    let at = e.from;
    for (let l = layer[e.from] + 1; l < layer[e.to]; l++) {
      const d = net.sizes.length;
      net.sizes.push({ w: 6, h: 0 });
      net.layer.push(l);
      net.up.push([]);
      net.down.push([]);
      chain.dummies.push(d);
      join(at, d);
      at = d;
    }
    join(at, e.to);
    net.chains.push(chain);
  }
  return net;
}

// Rows of nodes, ordered by the places of their neighbours, down and up again; the order with the fewest crossings stays.
function orderRows(net) {
  const rows = [];
  net.layer.forEach((l, v) => (rows[l] = rows[l] || []).push(v));
  for (let l = 0; l < rows.length; l++) rows[l] = rows[l] || [];
  const place = new Array(net.layer.length).fill(0);
  const settle = (row) => row.forEach((v, i) => (place[v] = i));
  rows.forEach(settle);
  let best = rows.map((r) => r.slice()), fewest = crossings(net, rows, place);
  for (let round = 0; round < 12 && fewest > 0; round++) {
    const downwards = round % 2 === 0, near = downwards ? net.up : net.down;
    for (let k = 1; k < rows.length; k++) {
      const row = rows[downwards ? k : rows.length - 1 - k];
      const wish = new Map(row.map((v, i) => [v, near[v].length ? near[v].reduce((s, u) => s + place[u], 0) / near[v].length : i]));
      row.sort((a, b) => wish.get(a) - wish.get(b) || place[a] - place[b]);
      settle(row);
    }
    const now = crossings(net, rows, place);
    if (now < fewest) fewest = now, best = rows.map((r) => r.slice());
  }
  return best;
}

// How many pairs of edges between neighbouring rows cross: inversions, counted with a Fenwick tree.
function crossings(net, rows, place) {
  let sum = 0;
  for (let l = 0; l + 1 < rows.length; l++) {
    const size = rows[l + 1].length, tree = new Array(size + 1).fill(0);
    let seen = 0;
    for (const v of rows[l]) {
      const targets = net.down[v].map((w) => place[w]).sort((a, b) => a - b);
      for (const t of targets) {
        let before = 0;
        for (let i = t + 1; i > 0; i -= i & -i) before += tree[i];
        sum += seen - before;
      }
      for (const t of targets) {
        seen++;
        for (let i = t + 1; i <= size; i += i & -i) tree[i]++;
      }
    }
  }
  return sum;
}

function rowPositions(net, rows, gap) {
  const y = new Array(net.layer.length).fill(0);
  let at = 0;
  for (const row of rows) {
    const h = row.reduce((most, v) => Math.max(most, net.sizes[v].h), 0);
    for (const v of row) y[v] = at + h / 2;
    at += h + gap;
  }
  return y;
}

// Every node goes where its neighbours' middle is, as far as its row lets it; bends of long edges yield. Where a node has
// neighbours that are nodes, bends do not count: a chain with ways around it stays straight.
function columnPositions(net, rows, gap) {
  const x = new Array(net.layer.length).fill(0);
  for (const row of rows) {
    let at = 0;
    for (const v of row) x[v] = at + net.sizes[v].w / 2, at += net.sizes[v].w + gap;
    for (const v of row) x[v] -= at / 2;
  }
  const isBend = (v) => v >= net.real;
  for (let round = 0; round < 24; round++) {
    const downwards = round % 2 === 0;
    for (let k = 0; k < rows.length; k++) {
      const row = rows[downwards ? k : rows.length - 1 - k];
      const wish = row.map((v) => {
        const near = round >= 18 ? net.up[v].concat(net.down[v]) : downwards ? net.up[v] : net.down[v];
        const real = near.filter((u) => !isBend(u)), by = real.length ? real : near;
        return by.length ? by.reduce((s, u) => s + x[u], 0) / by.length : x[v];
      });
      const weight = row.map((v) => (!isBend(v) ? 24 : net.up[v].some(isBend) && net.down[v].some(isBend) ? 3 : 1));
      const offset = [0];
      for (let i = 1; i < row.length; i++) offset.push(offset[i - 1] + (net.sizes[row[i - 1]].w + net.sizes[row[i]].w) / 2 + gap);
      nearestInOrder(wish.map((w, i) => w - offset[i]), weight).forEach((p, i) => (x[row[i]] = p + offset[i]));
    }
  }
  return x;
}

// The nearest sequence, by weighted squares, that never falls: neighbours that would are pooled.
function nearestInOrder(wish, weight) {
  const pools = [];
  wish.forEach((value, i) => {
    let pool = { value, weight: weight[i], count: 1 };
    while (pools.length && pools[pools.length - 1].value > pool.value) {
      const before = pools.pop(), sum = before.weight + pool.weight;
      pool = { value: (before.value * before.weight + pool.value * pool.weight) / sum, weight: sum, count: before.count + pool.count };
    }
    pools.push(pool);
  });
  return pools.flatMap((p) => new Array(p.count).fill(p.value));
}
