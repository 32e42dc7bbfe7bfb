-- The page that cgraphlua.report fills: its style, its script, its frame.
-- $(name) stands for what the report puts in.

return [==[
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Memory of $(device)</title>
<style>
:root { color-scheme: light dark; --back: #fbfbf9; --ink: #1d2329; --dim: #68727d;
  --line: #d9dcdf; --card: #ffffff; --live: #2b6cb0; --scratch: #c05f1e; --pending: #d9a928;
  --free: #cfd6dc; --unmapped: #eef0f2; --mark: #b02b5c; }
@media (prefers-color-scheme: dark) { :root { --back: #14181c; --ink: #e4e8ec; --dim: #94a0ab;
  --line: #333b43; --card: #1b2126; --live: #5b9bdd; --scratch: #e08a4a; --pending: #e3be57;
  --free: #46515b; --unmapped: #262d34; --mark: #e66a97; } }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--back);
  color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p { margin: .3rem 0; } .dim { color: var(--dim); }
.tiles { display: grid; gap: .6rem; margin-top: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .5rem .7rem; } .tile b { display: block; font-size: 1.25rem; font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line);
  white-space: nowrap; } .n { text-align: right; }
th { font-weight: 600; color: var(--dim); }
th button { all: unset; cursor: pointer; } th button:focus-visible { outline: 2px solid; }
th[aria-sort=ascending] button::after { content: " \25b2"; }
th[aria-sort=descending] button::after { content: " \25bc"; }
.where { font-family: ui-monospace, monospace; font-size: .9em; }
.bar { display: flex; align-items: center; gap: .7rem; margin: .25rem 0; }
.bar .track { flex: 1 1 auto; min-width: 0; } .bar svg { display: block; height: 1.5rem;
  border: 1px solid var(--line); box-sizing: border-box; }
.bar span { flex: 0 0 13rem; font-size: .85rem; text-align: right; }
rect { cursor: pointer; } rect.chosen { stroke: var(--mark); stroke-width: 3;
  vector-effect: non-scaling-stroke; }
.live { fill: var(--live); } .scratch { fill: var(--scratch); }
.pending { fill: var(--pending); } .free { fill: var(--free); }
.unmapped { fill: var(--unmapped); }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: .85rem; }
.legend svg { width: .9em; height: .9em; vertical-align: -.1em; margin-right: .35em; }
#time svg { width: 100%; height: 15rem; display: block; background: var(--card);
  border: 1px solid var(--line); }
.area { fill: var(--live); opacity: .35; } .edge { fill: none; stroke: var(--live); }
.reserved { fill: none; stroke: var(--dim); stroke-dasharray: 5 3; }
.edge, .reserved, .cursor { stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.cursor { stroke: var(--mark); } #read { min-height: 1.5em; }
input[type=search] { font: inherit; padding: .2rem .5rem; width: 18rem; max-width: 100%; }
.tools { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; align-items: center; }
</style>
</head>
<body>
<h1>Memory of $(device)</h1>
<p class="dim">$(about)</p>
<div class="tiles">$(tiles)</div>
<h2>Pools</h2>
<div class="wide"><table id="pools"><thead><tr><th>pool</th><th class="n">reserved</th>
<th class="n">peak</th><th class="n">in buffers</th><th class="n">peak</th>
<th class="n">allocations</th><th class="n">freed</th><th class="n">executables</th>
<th class="n">waits</th><th class="n">refused</th></tr></thead><tbody>
$(pools)</tbody></table></div>
<h2>Segments</h2>
<p class="legend" id="legend"></p>
<div id="bars"></div>
<h2>Bytes over time</h2>
<div id="time"><p class="dim" id="read">$(history)</p></div>
<h2>Who holds what</h2>
<p class="tools"><label>Show <input type="search" id="filter" placeholder="a line, a pool"></label>
<label><input type="checkbox" id="lines"> one row per line</label>
<span class="dim" id="count"></span></p>
<div class="wide"><table id="holders"><thead><tr>
<th class="n" data-key="bytes"><button>bytes</button></th>
<th class="n" data-key="count"><button>blocks</button></th>
<th data-key="where"><button>allocated at</button></th>
<th data-key="pool"><button>pool</button></th>
<th class="n" data-key="age"><button>age</button></th></tr></thead><tbody></tbody></table></div>
<script type="application/json" id="data">$(data)</script>
<script>
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const states = ["live", "scratch", "pending", "free", "unmapped"];
  const words = ["held by a buffer", "freed, used by replays", "freed, still in use",
    "free", "no memory behind it"];
  const WIDTH = 1000, SMALL = 0.5, ROWS = 500;
  const byId = (id) => document.getElementById(id);
  const size = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (n >= 1024 && i < 4) { n /= 1024; i++; }
    return (i && n < 100 ? n.toFixed(n < 10 ? 2 : 1) : n.toFixed(0)) + " " + units[i];
  };
  const time = (ms) => ms >= 60000 ? (ms / 60000).toFixed(1) + " min"
    : ms >= 1000 ? (ms / 1000).toFixed(2) + " s" : ms.toFixed(2) + " ms";
  const element = (name, text, className) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (className) e.className = className;
    return e;
  };
  const drawing = (name, attributes) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    return e;
  };
  const where = (block) => block.where < 0 ? "unknown" : data.lines[block.where];
  const poolName = (i) => data.pools[i].name;

  /* Blocks come as [state, bytes, requested, line, number, age]. */
  const all = [];
  data.pools.forEach((pool, p) => pool.segments.forEach((segment) => {
    segment.list = segment.blocks.map((b) => ({ pool: p, state: b[0], bytes: b[1],
      asked: b[2], where: b[3], number: b[4], age: b[5], count: 1 }));
    for (const b of segment.list) if (b.state === 0) all.push(b);
  }));

  /* Segments */
  const legend = byId("legend");
  states.forEach((state, i) => {
    const item = element("span", words[i]), key = drawing("svg", { viewBox: "0 0 1 1" });
    key.append(drawing("rect", { width: 1, height: 1, class: state }));
    item.prepend(key);
    legend.append(item);
  });
  let chosen = null;
  function bar(segment, widest) {
    const row = element("div", undefined, "bar"), track = element("div", undefined, "track");
    const svg = drawing("svg", { viewBox: "0 0 " + WIDTH + " 10", preserveAspectRatio: "none" });
    svg.style.width = Math.max(3, 100 * segment.bytes / widest) + "%";
    const scale = WIDTH / segment.bytes;
    let at = 0;
    for (let i = 0; i < segment.list.length;) {
      let block = segment.list[i++], bytes = block.bytes, n = 1;
      const sums = [0, 0, 0, 0, 0];
      sums[block.state] += block.bytes;
      /* What is too small to see is shown together, as most of it is. */
      while (i < segment.list.length && bytes * scale < SMALL &&
             segment.list[i].bytes * scale < SMALL) {
        block = segment.list[i++];
        bytes += block.bytes;
        sums[block.state] += block.bytes;
        n++;
      }
      const most = sums.indexOf(Math.max(...sums));
      const r = drawing("rect", { x: at * scale, y: 0, width: bytes * scale, height: 10,
        class: states[most] });
      const text = n > 1 ? n + " blocks, " + size(bytes) + ", mostly " + words[most]
        : size(bytes) + ", " + words[most] + (block.state ? "" : " of " + block.asked + " B\n"
          + where(block) + "\nallocation " + block.number);
      const title = drawing("title", {});
      title.textContent = text;
      r.append(title);
      if (n === 1 && block.state === 0)
        r.addEventListener("click", () => {
          if (chosen) chosen.classList.remove("chosen");
          chosen = chosen === r ? null : r;
          if (chosen) r.classList.add("chosen");
          byId("filter").value = chosen ? where(block) : "";
          show();
        });
      svg.append(r);
      at += bytes;
    }
    track.append(svg);
    row.append(track, element("span", size(segment.mapped) + " at 0x" +
      segment.address.toString(16), "dim"));
    return row;
  }
  const bars = byId("bars");
  const widest = Math.max(1, ...data.pools.flatMap((p) => p.segments.map((s) => s.bytes)));
  data.pools.forEach((pool) => {
    if (!pool.segments.length) return;
    bars.append(element("p", pool.name + ": " + size(pool.reserved)));
    pool.segments.forEach((segment) => bars.append(bar(segment, widest)));
  });
  if (!bars.children.length) bars.append(element("p", "No pool has any memory.", "dim"));

  /* The timeline: points [ms, least, most, last, reserved, events, line, bytes]. */
  function timeline(points) {
    const from = points[0][0], span = Math.max(1e-6, data.now - from), HEIGHT = 300;
    const top = 1.08 * Math.max(1, ...points.map((p) => Math.max(p[2], p[4])));
    const x = (ms) => (WIDTH * (ms - from) / span).toFixed(2);
    const y = (bytes) => (HEIGHT * (1 - bytes / top)).toFixed(2);
    let edge = "M0," + y(points[0][3]), reserved = "M0," + y(points[0][4]);
    for (const p of points) {
      edge += "H" + x(p[0]) + "V" + y(p[2]) + "V" + y(p[1]) + "V" + y(p[3]);
      reserved += "H" + x(p[0]) + "V" + y(p[4]);
    }
    edge += "H" + WIDTH;
    const svg = drawing("svg", { viewBox: "0 0 " + WIDTH + " " + HEIGHT,
      preserveAspectRatio: "none", role: "img", "aria-label": "bytes over time" });
    const cursor = drawing("line", { y1: 0, y2: HEIGHT, x1: -9, x2: -9, class: "cursor" });
    svg.append(drawing("path", { d: edge + "V" + HEIGHT + "H0Z", class: "area" }),
      drawing("path", { d: edge, class: "edge" }),
      drawing("path", { d: reserved + "H" + WIDTH, class: "reserved" }), cursor);
    const read = byId("read"), rest = read.textContent;
    svg.addEventListener("mousemove", (event) => {
      const box = svg.getBoundingClientRect();
      const ms = from + span * (event.clientX - box.left) / box.width;
      let p = points[0];
      for (const q of points) if (q[0] <= ms) p = q;
      cursor.setAttribute("x1", x(ms));
      cursor.setAttribute("x2", x(ms));
      read.textContent = time(ms - from) + ": " + size(p[3]) + " in buffers, " + size(p[4]) +
        " reserved; the largest event here: " + size(p[7]) +
        (p[6] < 0 ? "" : " at " + data.lines[p[6]]);
    });
    svg.addEventListener("mouseleave", () => { read.textContent = rest; });
    byId("time").prepend(svg);
  }
  if (data.points.length) timeline(data.points);

  /* Who holds what */
  const sort = { key: "bytes", down: true };
  const value = { bytes: (b) => b.bytes, count: (b) => b.count, where: where,
    pool: (b) => poolName(b.pool), age: (b) => b.age };
  function grouped(blocks) {
    const groups = new Map();
    for (const b of blocks) {
      const key = b.where + " " + b.pool, g = groups.get(key);
      if (!g) groups.set(key, Object.assign({}, b));
      else { g.bytes += b.bytes; g.count++; g.age = Math.max(g.age, b.age); }
    }
    return [...groups.values()];
  }
  function show() {
    const wanted = byId("filter").value.toLowerCase();
    let rows = all.filter((b) => !wanted || (where(b) + " " + poolName(b.pool))
      .toLowerCase().includes(wanted));
    const bytes = rows.reduce((sum, b) => sum + b.bytes, 0);
    if (byId("lines").checked) rows = grouped(rows);
    const of = value[sort.key];
    rows.sort((a, b) => {
      const p = of(a), q = of(b), order = p < q ? -1 : p > q ? 1 : a.number - b.number;
      return sort.down ? -order : order;
    });
    const body = document.querySelector("#holders tbody"), shown = rows.slice(0, ROWS);
    body.replaceChildren(...shown.map((b) => {
      const row = element("tr"), bytes = element("td", size(b.bytes), "n");
      bytes.title = b.bytes + " B";
      row.append(bytes, element("td", b.count, "n"), element("td", where(b), "where"),
        element("td", poolName(b.pool)),
        element("td", b.age < 0 ? "before the history" : time(b.age), "n"));
      return row;
    }));
    byId("count").textContent = (rows.length > ROWS ? ROWS + " of " : "") + rows.length +
      (rows.length === 1 ? " row, " : " rows, ") + size(bytes);
    for (const th of document.querySelectorAll("#holders th"))
      if (th.dataset.key === sort.key)
        th.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
  }
  for (const th of document.querySelectorAll("#holders th"))
    th.firstChild.addEventListener("click", () => {
      const key = th.dataset.key;
      sort.down = sort.key === key ? !sort.down : key !== "where" && key !== "pool";
      sort.key = key;
      show();
    });
  byId("filter").addEventListener("input", show);
  byId("lines").addEventListener("change", show);
  show();
  document.body.dataset.ready = "yes";
})();
</script>
</body>
</html>
]==]
