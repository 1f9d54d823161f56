// What the flame graph draws, without drawing: totals, boxes, search, and numbers as words.
// `daybreak.flame` is what flame.js uses.
(() => {
  "use strict";
  const LIMIT = 5000;
  const ALL = "all";
  const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  const KINDS = ["module", "operator", "runtime", "python", "mark", "compute", "communication",
    "copy", "fill", "wait", "device", "cause", "other"]; // as in profiler/analysis/flame_document.py

  // The same rule as profiler/units.py: three significant digits, the largest unit above one.
  function duration(ns) {
    const [factor, unit] = TIMES.find(([one]) => Number((ns / one).toPrecision(3)) >= 1) ?? [1, "ns"];
    if (factor === 1 && Number.isInteger(ns)) return `${ns} ns`;
    const value = Number((ns / factor).toPrecision(3));
    const digits = Math.max(0, 2 - Math.floor(Math.log10(value)));
    const form = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return `${value.toLocaleString("en", form)} ${unit}`;
  }

  function share(part) {
    const percent = part * 100;
    if (percent > 0 && percent < 0.01) return "<0.01 %";
    return `${percent.toFixed(percent < 10 ? 2 : 1)} %`;
  }

  // A view with what drawing needs: totals, children by size, depth and a name for every path.
  function model(data, kind) {
    const view = data.views.find((one) => one.kind === kind);
    if (!view) return null;
    const size = view.parent.length;
    const root = size;
    const parent = view.parent.map((at) => (at < 0 ? root : at));
    const total = Float64Array.from([...view.self_ns, 0]);
    const frames = new Uint32Array(size + 1).fill(1);
    const small = new Map();
    for (const fold of view.folded) {
      const at = fold.at < 0 ? root : fold.at;
      small.set(at, fold);
      total[at] += fold.total_ns;
      frames[at] += fold.frames;
    }
    const children = Array.from({ length: size + 1 }, () => []);
    for (let at = size - 1; at >= 0; at -= 1) {
      total[parent[at]] += total[at];
      frames[parent[at]] += frames[at];
    }
    const path = new Uint32Array(size + 1);
    const hashes = data.names.map(hashed);
    const reached = new Int32Array(size + 1).fill(-1);
    for (let at = 0; at < size; at += 1) {
      children[parent[at]].push(at);
      path[at] = Math.imul(path[parent[at]] ^ hashes[view.name[at]], 16777619) >>> 0;
      const own = view.efficiency.length ? view.efficiency[at] : -1;
      reached[at] = own >= 0 ? own : reached[parent[at]];
    }
    for (const list of children) list.sort((a, b) => total[b] - total[a]);
    const name = (at) => (at === root ? ALL : data.names[view.name[at]]);
    const category = (at) => (at === root ? "other" : KINDS[view.category[at]]);
    const calls = (at) => (at === root ? 0 : view.calls[at]);
    const self = (at) => (at === root ? 0 : view.self_ns[at]);
    const known = view.efficiency.length > 0;
    return { size, root, parent, total, frames, small, children, path, reached, known, steps: data.steps, name, category, calls, self };
  }

  function hashed(text) {
    let hash = 2166136261;
    for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619);
    return hash;
  }

  // The largest frames below `top`; with the "+n smaller" boxes at most LIMIT in all.
  function kept(m, top) {
    const inside = [top];
    for (let at = 0; at < inside.length; at += 1) {
      for (const child of m.children[inside[at]]) inside.push(child);
    }
    if (inside.length > LIMIT) inside.sort((a, b) => m.total[b] - m.total[a]);
    const keep = new Uint8Array(m.size + 1);
    for (let room = Math.min(LIMIT, inside.length); ;) {
      keep.fill(0);
      for (let at = 0; at < room; at += 1) keep[inside[at]] = 1;
      let folds = 0;
      for (let at = 0; at < room; at += 1) {
        const one = inside[at];
        if (m.small.has(one) || m.children[one].some((child) => !keep[child])) folds += 1;
      }
      const over = room + folds - LIMIT;
      if (over <= 0) return keep;
      room -= over;
    }
  }

  // Boxes in drawing order: the way to `top` at full width, then everything below it.
  function boxes(m, top, width) {
    const above = [];
    for (let at = top; at !== m.root; ) above.push((at = m.parent[at]));
    const out = above.reverse().map((at, row) => ({ at, x: 0, w: width, row, above: true }));
    const keep = kept(m, top);
    const scale = width / m.total[top];
    const waiting = [{ at: top, x: 0, row: out.length }];
    while (waiting.length) {
      const { at, x, row } = waiting.pop();
      out.push({ at, x, w: m.total[at] * scale, row });
      let next = x;
      let count = m.small.get(at)?.frames ?? 0;
      let ns = m.small.get(at)?.total_ns ?? 0;
      for (const child of m.children[at]) {
        if (keep[child]) {
          waiting.push({ at: child, x: next, row: row + 1 });
          next += m.total[child] * scale;
        } else {
          count += m.frames[child];
          ns += m.total[child];
        }
      }
      if (count) out.push({ at, x: next, w: ns * scale, row: row + 1, fold: { count, ns } });
    }
    return out;
  }

  function hits(m, text) {
    const wanted = text.toLowerCase();
    const hit = new Uint8Array(m.size + 1);
    const under = new Uint8Array(m.size + 1);
    let ns = 0;
    for (let at = 0; at < m.size; at += 1) {
      hit[at] = m.name(at).toLowerCase().includes(wanted) ? 1 : 0;
      under[at] = hit[at] || under[m.parent[at]];
      if (hit[at] && !under[m.parent[at]]) ns += m.total[at];
    }
    return { hit, ns };
  }

  const band = (thousandths) => (thousandths < 0 ? -1 : Math.min(4, Math.floor(thousandths / 200)));

  window.daybreak.flame = { KINDS, duration, share, model, boxes, hits, band };
})();
