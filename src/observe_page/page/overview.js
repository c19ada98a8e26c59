"use strict";
let source = null;
const $ = (id) => document.getElementById(id);
// `now`, `before` and `base` are moments: the answers of the program to its questions.
const state = { now: null, before: null, base: null, frozen: false, sort: "busy", filter: "", runtime: 0, shown: null, opened: new Set() };

// ---- numbers ----
function count(n) {
  if (n < 1000) return n < 10 && n % 1 ? n.toFixed(1) : n.toFixed(0);
  const units = ["k", "M", "G", "T"];
  let unit = -1;
  while (n >= 999.5 && unit < 3) { n /= 1000; ++unit; }
  return (n < 99.95 ? n.toFixed(1) : n.toFixed(0)) + units[unit];
}
const exact = (n) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
function time(ns) {
  if (!ns) return "–";
  const units = ["ns", "µs", "ms", "s"];
  let unit = 0;
  while (ns >= 999.5 && unit < 3) { ns /= 1000; ++unit; }
  return (ns < 99.95 && unit ? ns.toFixed(1) : ns.toFixed(0)) + " " + units[unit];
}
const signed = (n) => (n > 0 ? "+" : n < 0 ? "−" : "±") + count(Math.abs(n));

// ---- elements ----
function add(parent, tag, text, properties) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  Object.assign(made, properties || {});
  parent.append(made);
  return made;
}
// Makes the children of `parent` those of `items`, in this order. A child stays the same element for as long as its key
// does: so it keeps the focus, and a click that has begun.
function keep(parent, items, keyOf, make, update) {
  const old = new Map([...parent.children].map((one) => [one.dataset.key, one]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let one = old.get(key);
    if (one) old.delete(key); else { one = make(item); one.dataset.key = key; }
    update(one, item);
    if (one === at) at = at.nextElementSibling; else moveBefore(parent, one, at);
  }
  for (const one of old.values()) one.remove();
}
function moveBefore(parent, one, at) {
  const focused = one.contains(document.activeElement) ? document.activeElement : null;
  parent.insertBefore(one, at);
  if (focused) focused.focus({ preventScroll: true });
}
function setText(element, text) { if (element.textContent !== text) element.textContent = text; }
// `columns`: [key, title, text of an item, whether it is bad, what a click on it does]. The first one is to the left. A text
// may be an array of numbers: a line of them; or a link of a `text` to an address, `href`, which may be missing.
const textColumns = new Set(["class", "page", "given", "state", "last", "waits", "handler", "at", "for", "asked", "first", "id"]);
function table(made, columns, items, keyOf, sort) {
  const side = (i) => (i && !textColumns.has(columns[i][0]) ? "" : "left");
  const head = made.tHead, body = made.tBodies[0];
  if (!head.rows.length) {
    const line = add(head, "tr");
    columns.forEach(([key, title], i) => {
      const cell = add(line, "th", sort ? undefined : title, { className: side(i), scope: "col" });
      if (sort) add(cell, "button", title, { onclick: () => sort(key) });
    });
  }
  if (sort) columns.forEach(([key], i) => {
    const cell = head.rows[0].cells[i];
    if (state.sort !== key) cell.removeAttribute("aria-sort");
    else cell.setAttribute("aria-sort", key === "name" ? "ascending" : "descending");
  });
  keep(body, items, keyOf, (item) => {
    const line = document.createElement("tr");
    columns.forEach(([, , , , click], i) => {
      const cell = add(line, i ? "td" : "th", undefined, { className: side(i) });
      if (!i) { cell.scope = "row"; cell.style.fontWeight = "400"; }
      if (click) add(cell, "button", undefined, { onclick: () => click(line.item), className: "plain" });
    });
    return line;
  }, (line, item) => {
    line.item = item;
    line.className = item.chosen ? "chosen" : "";
    columns.forEach(([, , text, bad], i) => {
      const cell = line.cells[i], value = text(item), said = String(value);
      if (Array.isArray(value)) return drawLine(cell.firstElementChild || cell.appendChild(newLine("line")), value);
      if (value && value.text) return drawLink(cell.firstElementChild || add(cell, "a", undefined, { rel: "noreferrer" }), value);
      setText(cell.firstElementChild || cell, said);
      if (!i) cell.title = said;
      cell.classList.toggle("bad", Boolean(bad && bad(item)));
    });
  });
}
function drawLink(to, { text, href }) {
  to.hidden = !href;
  if (href && to.getAttribute("href") !== href) to.href = href;
  setText(to, href ? text : "");
}
// In the order of `worth`, the greatest first; but two items change places only if that is clear, so that rows stay where the
// eye has found them. `kept` remembers the order.
function inStableOrder(kept, items, keyOf, worth) {
  const clearly = 1.2, places = new Map(kept.map((key, i) => [key, i])), place = (item) => places.has(keyOf(item)) ? places.get(keyOf(item)) : Infinity;
  const list = items.slice().sort((a, b) => place(a) - place(b) || worth(b) - worth(a) || String(keyOf(a)).localeCompare(String(keyOf(b))));
  for (let i = 1; i < list.length; ++i)
    for (let k = i; k > 0 && worth(list[k]) > clearly * worth(list[k - 1]); --k) [list[k - 1], list[k]] = [list[k], list[k - 1]];
  kept.splice(0, kept.length, ...list.map(keyOf));
  return list;
}
// The first ones of a long table's items, and a button for all of them: hundreds of routes must not hide what comes below.
const rowsMax = 20;
function firstOf(made, items) {
  if (!made.more) {
    made.more = document.createElement("button");
    made.more.className = "plain";
    made.more.onclick = () => { made.isWhole = !made.isWhole; draw(); };
    made.parentElement.after(made.more);
  }
  made.more.hidden = items.length <= rowsMax;
  setText(made.more, made.isWhole ? `Show the first ${rowsMax}` : `Show all ${exact(items.length)}`);
  return made.isWhole ? items : items.slice(0, rowsMax);
}
function newTable(parent) {
  const made = add(add(parent, "div", undefined, { className: "scroll" }), "table");
  add(made, "thead"); add(made, "tbody");
  return made;
}

// ---- the last five minutes ----
// The program keeps them: a value each second for each row of its tables of numbers. `tables`: by prefix, rows with the names of
// their labels, and series.
const course = { times: [], tables: new Map() }, courseMax = 300;
function takeCourse(kept) {
  if (!kept || kept.step_s !== 1) return;
  const last = course.times.length ? course.times[course.times.length - 1] : 0, fresh = kept.times_ns.filter((time) => time > last).length;
  if (!fresh) return;
  const skip = kept.times_ns.length - fresh, rows = new Map();
  for (const table of kept.tables) for (const row of table.rows) {
    if (!course.tables.has(table.prefix)) course.tables.set(table.prefix, new Map());
    const known = course.tables.get(table.prefix), key = table.labels.join() + "\u0000" + row.labels.join("\u0000");
    if (!known.has(key)) known.set(key, { label: (name) => row.labels[table.labels.indexOf(name)] || "", labels: row.labels, series: {} });
    rows.set(known.get(key), row.series);
  }
  for (const table of course.tables.values()) for (const row of table.values()) {
    const now = rows.get(row) || {};
    for (const name of Object.keys(now)) row.series[name] = row.series[name] || course.times.map(() => 0);
    for (const name of Object.keys(row.series)) row.series[name] = row.series[name].concat(now[name] ? now[name].slice(skip) : Array(fresh).fill(0)).slice(-courseMax);
  }
  course.times = course.times.concat(kept.times_ns.slice(skip)).slice(-courseMax);
}
// The values of some numbers of the rows that fit, together: their sum, or the greatest for bounds of times.
function courseOf(prefix, numbers, fits) {
  const all = course.times.map(() => 0);
  for (const row of (course.tables.get(prefix) || new Map()).values()) {
    if (fits && !fits(row)) continue;
    for (const name of numbers) (row.series[name] || []).forEach((n, i) => { all[i] = name.endsWith("_p99") ? Math.max(all[i], n) : all[i] + n; });
  }
  return all;
}
// Of the last five seconds, so that the text of a rare event does not blink.
const recent = (values) => { const last = values.slice(-5); return last.length ? last.reduce((sum, n) => sum + n, 0) / last.length : 0; };
const inPercent = (values) => values.map((n) => 100 * n);
function newLine(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 90 22"); svg.setAttribute("preserveAspectRatio", "none"); svg.setAttribute("aria-hidden", "true"); svg.setAttribute("class", name);
  path.setAttribute("class", "spark"); path.setAttribute("vector-effect", "non-scaling-stroke");
  svg.append(path);
  return svg;
}
// The newest value is at the right edge. The line of a program that is younger than a minute is shorter.
function drawLine(svg, values) {
  const most = Math.max(...values, 1e-9), steps = Math.max(values.length, 60) - 1, first = steps + 1 - values.length;
  svg.firstElementChild.setAttribute("d", values.length < 2 || !values.some((n) => n > 0) ? "" : values.map((n, i) => (i ? "L" : "M") + (90 * (first + i) / steps).toFixed(1) + " " + (20 - 18 * n / most).toFixed(1)).join(" "));
}

// ---- what a moment says ----
const from = () => state.base || state.before;
const own = (moment) => moment && moment.runtimes[state.runtime];
function seconds() {
  const since = from();
  return Math.max(1e-3, (since ? state.now.now_ns - since.now_ns : own(state.now).up_ns) / 1e9);
}
const shortName = (handler, of_class) => handler.replace(/^&/, "").replace(of_class + "::", "");
function handlersOf(of_class, was) {
  return of_class.handlers.map((h) => {
    const old = (was && was.handlers.find((o) => o.handler === h.handler)) || { messages: 0, resumed: 0, busy_ns: 0, failures: 0 };
    return { name: shortName(h.handler, of_class.class), full: h.handler, messages: h.messages + h.resumed,
      rate: (h.messages + h.resumed - old.messages - old.resumed) / seconds(), busy: Math.max(0, h.busy_ns - old.busy_ns) / seconds() / 1e7,
      p50: h.busy_p50_ns, p99: h.busy_p99_ns, wait: h.wait_p99_ns, failures: h.failures };
  });
}
function classes() {
  const old = new Map(((own(from()) || {}).classes || []).map((c) => [c.class, c]));
  return (own(state.now).classes || []).map((c) => {
    const was = old.get(c.class), handlers = handlersOf(c, was), sum = (key) => handlers.reduce((n, h) => n + h[key], 0);
    const most = (key) => handlers.reduce((n, h) => Math.max(n, h[key]), 0);
    return { name: c.class, handlers, alive: c.alive, more: was ? c.alive - was.alive : 0, suspended: c.suspended,
      moreSuspended: was ? c.suspended - was.suspended : 0, messages: sum("messages"), rate: sum("rate"), busy: sum("busy"),
      p99: most("p99"), wait: most("wait"), failures: sum("failures") };
  });
}

// ---- gauges and workers ----
function drawGauges() {
  const now = own(state.now), was = own(from()), m = now.metrics;
  const rate = (now.total.messages - (was ? was.total.messages : 0)) / seconds();
  const list = [["messages", exact(now.total.messages)], ["messages/s", count(rate)], ["actors", exact(m.actors)], ["suspended", exact(m.suspended)],
    ["spawned/s", count((now.total.spawned - (was ? was.total.spawned : 0)) / seconds())], ["failures", exact(m.failures)], ["dead letters", exact(m.dead_letters)],
    ["timers", exact(m.timers_armed)], ["I/O under way", exact(m.io_in_flight)], ["blocking calls", exact(m.blocking_calls)], ["lazies queued", exact(m.lazies_queued)]];
  fillGauges($("gauges"), list, ["failures"]);
}
// `list`: names and texts. Those of `wrong` are marked unless they are 0.
function fillGauges(box, list, wrong) {
  keep(box, list, ([name]) => name, ([name]) => {
    const one = document.createElement("div");
    one.className = "gauge";
    add(one, "dt", name); add(one, "dd");
    return one;
  }, (one, [name, text]) => {
    setText(one.lastElementChild, text);
    one.lastElementChild.classList.toggle("bad", wrong.includes(name) && text !== "0");
  });
}
function drawWorkers() {
  const now = own(state.now), was = own(from());
  const list = now.workers.concat([now.others]).map((w, k) => {
    const old = was && (k < now.workers.length ? was.workers[k] : was.others);
    const share = (member) => (w[member] - (old ? old[member] : 0)) / 1e9 / seconds();
    return { name: k < now.workers.length ? "worker " + (k + 1) : "others", n: w.messages - (old ? old.messages : 0), queued: w.queued, busy: share("busy_ns"), blocked: share("blocked_ns") };
  });
  keep($("workers"), list, (w) => w.name, (w) => {
    const line = document.createElement("div");
    line.className = "worker"; line.setAttribute("role", "listitem");
    add(line, "span", w.name);
    const track = add(line, "div", undefined, { className: "track" });
    add(track, "div"); add(track, "div", undefined, { className: "blocked" });
    add(line, "span", "", { className: "soft" });
    return line;
  }, (line, w) => {
    const percent = (part, digits) => (100 * Math.min(1, part)).toFixed(digits);
    line.children[1].firstElementChild.style.width = percent(w.busy, 1) + "%";
    line.children[1].lastElementChild.style.width = percent(Math.min(w.blocked, 1 - w.busy), 1) + "%";
    setText(line.children[2], percent(w.busy, 0) + " % busy" + (w.blocked > 0.01 ? ", " + percent(w.blocked, 0) + " % blocked" : "") + " · " + count(w.n / seconds()) + "/s · " + count(w.queued) + " queued");
  });
  setText($("running"), now.running);
}

// ---- nodes of a cluster ----
const shardColumns = 64, shardPixels = 10, nobody = -1;
// The same for all readers, and far from those of the nodes beside it.
const colourOf = (place) => `hsl(${Math.round(place * 137.5) % 360} 62% 50%)`;
// The owner of each shard, as its place in the list of nodes.
function ownersOf(node) {
  const all = [];
  for (let i = 0; i < node.owners.length; i += 2) for (let n = node.owners[i + 1]; n > 0; --n) all.push(node.owners[i]);
  return all;
}
const saysOwner = (node, owner) => (owner === nobody || !node.nodes[owner] ? "nobody" : node.nodes[owner].name);
// With `only`, the place of a node, the shards of the others are grey.
function drawShards(to, node, only) {
  const owners = ownersOf(node), lines = Math.ceil(owners.length / shardColumns);
  Object.assign(to, { width: shardColumns * shardPixels, height: lines * shardPixels, owners, node });
  const pen = to.getContext("2d"), empty = getComputedStyle(document.documentElement).getPropertyValue("--line");
  owners.forEach((owner, shard) => {
    pen.fillStyle = owner === nobody || (only !== undefined && owner !== only) ? empty : colourOf(owner);
    pen.fillRect(shard % shardColumns * shardPixels, Math.floor(shard / shardColumns) * shardPixels, shardPixels - 1, shardPixels - 1);
  });
  const free = owners.filter((owner) => owner === nobody).length;
  to.setAttribute("aria-label", "Shards by owner: " + node.nodes.map((one) => `${one.name} ${one.shards}`).concat(free ? ["nobody " + free] : []).join(", "));
}
function makeNode() {
  const box = document.createElement("div");
  box.parts = { said: add(box, "p"), gauges: add(box, "dl", undefined, { className: "gauges" }), shards: add(box, "canvas"), nodes: newTable(box) };
  box.parts.shards.setAttribute("role", "img");
  box.parts.shards.onmousemove = (at) => {
    const map = box.parts.shards, scale = map.width / map.clientWidth;
    const shard = Math.floor(at.offsetY * scale / shardPixels) * shardColumns + Math.floor(at.offsetX * scale / shardPixels);
    map.title = shard < map.owners.length ? `shard ${shard}: ${saysOwner(map.node, map.owners[shard])}` : "";
  };
  return box;
}
function drawNode(box, node) {
  const was = ((own(from()) || {}).cluster || []).find((one) => one.id === node.id);
  const rate = (key) => count(Math.max(0, node[key] - (was ? was[key] || 0 : 0)) / seconds());
  const { said, gauges, shards, nodes } = box.parts;
  const state = !node.joined ? " It has not joined." : node.alone ? " It is alone." : node.connected ? "" : " It has no connection to a NATS server.";
  setText(said, `This program is the node ${node.node} of the cluster ${node.of}.${state}` + (node.last_failure ? ` Its leases failed last with: ${node.last_failure}` : ""));
  said.classList.toggle("bad", !node.joined || !node.connected);
  fillGauges(gauges, [["shards here", exact(node.shards)], ["nodes", exact(node.members)], ["actors here", exact(node.actors)], ["here/s", rate("local")], ["sent/s", rate("sent")],
    ["served/s", rate("served")], ["sent again/s", rate("sent_again")], ["failed/s", rate("failed")], ["waiting", exact(node.waiting)], ["renewals", exact(node.renewals)],
    ["failed renewals", exact(node.failed_renewals)], ["shards lost", exact(node.shards_lost)]], ["failed/s", "failed renewals", "shards lost"]);
  drawShards(shards, node);
  const rows = node.nodes.map((one, place) => ({ ...one, place, is_here: one.id === node.id }));
  table(nodes, [["name", "node", (r) => r.name + (r.is_here ? " (this program)" : ""), null, (r) => showNode(r.id)], ["page", "page", (r) => ({ text: "Open page", href: r.is_here ? "" : pageOf(r) })], ["shards", "shards", (r) => exact(r.shards)], ["state", "state", (r) => (r.leaving ? "leaves" : "")], ["id", "id", (r) => r.id]], rows, (r) => r.id);
  for (const line of nodes.tBodies[0].rows) line.cells[0].style.borderLeft = "12px solid " + colourOf(line.item.place);
}
// As the node says in the database of the cluster: what is no address of a page must not become a link.
const pageOf = (member) => (/^https?:\/\/[^\s]+$/i.test(member.page || "") ? member.page : "");
// "0–340, 682": runs of shards.
function shardsText(node, place) {
  const runs = [];
  ownersOf(node).forEach((owner, shard) => {
    const last = runs[runs.length - 1];
    if (owner !== place) return;
    if (last && last[1] === shard - 1) last[1] = shard; else runs.push([shard, shard]);
  });
  return runs.map(([first, last]) => (first === last ? String(first) : first + "–" + last)).join(", ");
}
function showNode(id) {
  let parts = null;
  show("Node " + id, {
    of_class: "", url: { node: id },
    ask: async () => state.now,
    draw: (box, moment) => {
      if (!parts) parts = { said: add(box, "p"), shards: add(box, "canvas"), runs: add(box, "p", undefined, { className: "soft" }), link: add(add(box, "p"), "a", undefined, { rel: "noreferrer" }), more: add(box, "p") };
      const node = ((own(moment) || {}).cluster || []).find((one) => (one.nodes || []).some((other) => other.id === id));
      const place = node ? node.nodes.findIndex((other) => other.id === id) : -1;
      parts.shards.hidden = place < 0;
      if (place < 0) return void setText(parts.said, "It is no member of the cluster any more.");
      const its = node.nodes[place], is_here = id === node.id, page = is_here ? "" : pageOf(its);
      drawLink(parts.link, { text: "Open the page of " + its.name, href: page });
      setText($("detail-title"), "Node " + its.name);
      setText(parts.said, `${its.name} (${its.id}) owns ${exact(its.shards)} of ${exact(ownersOf(node).length)} shards` + (its.leaving ? ", and leaves the cluster." : "."));
      drawShards(parts.shards, node, place);
      parts.shards.setAttribute("role", "img");
      setText(parts.runs, its.shards ? "Shards " + shardsText(node, place) : "");
      setText(parts.more, is_here ? "It is this program, whose actors and messages are shown here." : page ? "Its actors and messages are on its own page." : "Its actors and messages are on its own page, whose address it does not say (cluster::options::page): `troupe ps` where it runs shows its process, and `troupe page PID` the page.");
    } });
}
function drawCluster() {
  const list = (own(state.now).cluster || []).filter((node) => node.id);
  $("cluster-part").hidden = !list.length;
  keep($("cluster"), list, (node) => node.id, makeNode, drawNode);
}

// ---- trouble ----
const orderOf = (w) => (w.active ? (w.severe ? 0 : 1) : 2);
const since = (w) => Math.max(0, state.now.now_ns - (w.active ? w.since_ns : w.last_ns));
// Each runtime of the program finds these.
const ofProcess = new Set(["descriptors_run_out", "exporter_unavailable", "membarrier_refused", "pool_exhausted", "slow_statements"]);
// Of all runtimes: trouble in one that is not shown is trouble as well.
function allWarnings() {
  const all = state.now.runtimes.flatMap((one, i) => (one.warnings || []).map((w) => ({ ...w, runtime: i })));
  const isOwn = (w) => w.runtime === state.runtime;
  return all.filter((w) => isOwn(w) || !ofProcess.has(w.kind) || !all.some((other) => isOwn(other) && other.kind === w.kind && other.subject === w.subject));
}
function drawWarnings() {
  const list = allWarnings().sort((a, b) => orderOf(a) - orderOf(b) || a.since_ns - b.since_ns || a.text.localeCompare(b.text));
  const severe = list.filter((w) => orderOf(w) === 0).length, notices = list.filter((w) => orderOf(w) === 1).length;
  const said = [severe ? severe + (severe > 1 ? " troubles" : " trouble") : "", notices ? notices + (notices > 1 ? " notices" : " notice") : ""].filter(Boolean).join(", ");
  setText($("verdict"), said || "No trouble");
  $("verdict").className = severe ? "severe" : notices ? "notice" : "";
  document.title = (severe ? severe + " ⚠ " : "") + state.now.program + " · troupe";
  $("no-warnings").hidden = list.length > 0;
  keep($("warning-list"), list, (w) => [w.runtime, w.kind, w.class, w.handler].join("\u0000"), makeWarning, fillWarning);
}
function makeWarning(w) {
  const line = document.createElement("li"), box = add(line, "details"), head = add(box, "summary");
  const said = { kind: add(head, "span", "", { className: "kind" }), say: add(head, "span", undefined, { className: "say" }), course: add(head, "span", undefined, { className: "course" }), when: add(head, "span", "", { className: "when" }) };
  said.before = add(said.say, "span"); said.subject = add(said.say, "b"); said.after = add(said.say, "span");
  said.value = add(said.course, "span"); said.line = said.course.appendChild(newLine("line"));
  box.addEventListener("toggle", () => {
    state.opened[box.open ? "add" : "delete"](warningName(line.item));
    writeUrl(false);
  });
  said.advice = add(box, "p");
  const facts = add(box, "p", undefined, { className: "soft" });
  said.facts = add(facts, "span"); add(facts, "span", " ");
  said.actor = add(facts, "button", undefined, { className: "plain", onclick: () => { showRuntime(line.item.runtime); showActor(line.item.actor); } });
  line.said = said;
  line.item = w;
  box.open = state.opened.has(warningName(w));
  return line;
}
const warningName = (w) => [w.runtime ? "runtime " + w.runtime : "", w.kind, w.class, w.handler].filter(Boolean).join(" ");
// The number that shows the trouble best: its values, what it is, and its text.
function courseOfWarning(w) {
  const percent = (n) => Math.round(n) + " %", seconds = (n) => "≤ " + time(1e9 * n), perSecond = (n) => count(n) + "/s";
  const ofClass = (row) => row.label("class") === w.class, ofHandler = (row) => ofClass(row) && row.label("handler") === w.handler;
  const inSubject = (...names) => (row) => names.every((name) => w.subject.includes(row.label(name)));
  const found = {
    long_handler: () => [inPercent(courseOf("troupe_handler", ["busy_seconds", "blocked_seconds"], ofHandler)), "of a thread in the handler", percent],
    failing_handler: () => [courseOf("troupe_handler", ["failures"], ofHandler), "failures", perSecond],
    growing_mailbox: () => [courseOf("troupe_class", ["longest_mailbox_messages"], ofClass), "messages in the longest mailbox", count],
    growing_class: () => [courseOf("troupe_class", ["alive"], ofClass), "actors", count],
    growing_suspended: () => [courseOf("troupe_class", ["suspended"], ofClass), "suspended calls", count],
    wait_cycle: () => [courseOf("troupe_class", ["suspended"], (row) => w.subject.split(" → ").includes(row.label("class"))), "suspended calls of these classes", count],
    unanswered_ask: () => [courseOf("troupe_class", ["suspended"], ofClass), "suspended calls of the class", count],
    dead_letters: () => [courseOf("troupe", ["dead_letters"]), "dead letters", perSecond],
    late_timers: () => [courseOf("troupe_timers", ["late_seconds_p99"]), "lateness, 99 %", seconds],
    long_io: () => [courseOf("troupe_io", ["duration_seconds_p99"], (row) => row.label("operation") === w.handler), "duration, 99 %", seconds],
    blocking_pool_full: () => [courseOf("troupe_blocking", ["waiting_calls"]), "calls that wait for a thread", count],
    pool_exhausted: () => [courseOf("troupe_pool", ["waiting"], inSubject("pool")), "callers that wait", count],
    slow_requests: () => [courseOf("troupe_http_request", ["duration_seconds_p99"], inSubject("method", "route")), "duration, 99 %", seconds],
    slow_statements: () => [courseOf("troupe_database_statement", ["duration_seconds_p99"], (row) => w.subject.startsWith(row.label("statement").slice(0, 30))), "duration, 99 %", seconds],
    refused_clients: () => [courseOf("troupe_http", ["refused_connections"]), "refused connections", perSecond],
    exporter_unavailable: () => [courseOf("troupe_otlp", ["failed_requests"]), "failed requests", perSecond],
    descriptors_run_out: () => [courseOf("process", ["open_fds"]), "open descriptors", count] }[w.kind];
  return found ? found() : [courseOf("troupe", ["warnings_active"], (row) => row.label("kind") === w.kind), "troubles of this kind", count];
}
function fillWarning(line, w) {
  const said = line.said, at = Math.max(0, w.text.indexOf(w.subject));
  line.item = w;
  const isOwn = w.runtime === state.runtime, [values, number, text] = isOwn ? courseOfWarning(w) : [[], "", count];
  setText(said.value, values.some((n) => n > 0) ? text(number.endsWith("99 %") ? Math.max(...values.slice(-5)) : recent(values)) : "");
  drawLine(said.line, values);
  said.course.title = number && number + " in the last five minutes";
  line.className = ["severe", "notice", "over"][orderOf(w)];
  setText(said.kind, ["trouble", "notice", "over"][orderOf(w)]);
  setText(said.before, (isOwn ? "" : `runtime ${w.runtime}: `) + w.text.slice(0, at));
  setText(said.subject, w.subject);
  setText(said.after, w.text.slice(at + w.subject.length));
  setText(said.when, w.active ? "for " + spanText(since(w)) : spanText(since(w)) + " ago");
  setText(said.advice, w.advice);
  setText(said.facts, `${w.kind.replace(/_/g, " ")}: ${exact(w.times)} times, last ${time(Math.max(0, state.now.now_ns - w.last_ns))} ago, longest ${time(w.longest_ns)}.`);
  setText(said.actor, "#" + w.actor);
  said.actor.hidden = !w.actor;
}

// ---- the head ----
const sizeText = (bytes) => (bytes < 1048576 ? (bytes / 1024).toFixed(0) + " KiB" : bytes < 1073741824 ? (bytes / 1048576).toFixed(0) + " MiB" : (bytes / 1073741824).toFixed(1) + " GiB");
function spanText(ns) {
  const s = Math.floor(ns / 1e9), two = (n) => String(n).padStart(2, "0");
  return s < 60 ? s + " s" : s < 3600 ? Math.floor(s / 60) + " min " + two(s % 60) + " s" : s < 86400 ? Math.floor(s / 3600) + " h " + two(Math.floor(s / 60) % 60) + " min" : Math.floor(s / 86400) + " d " + Math.floor(s / 3600) % 24 + " h";
}
function drawHead() {
  const now = own(state.now), p = state.now.process || {}, then = state.before && state.before.process;
  const took = then ? Math.max(1e-3, (state.now.now_ns - state.before.now_ns) / 1e9) : 0;
  const cpu = took ? Math.max(0, p.cpu_seconds - then.cpu_seconds) / took : 0;
  const facts = [["up", spanText(now.up_ns)], ["host", p.host || "–"], ["CPU", took ? Math.round(100 * cpu) + " %" : "–"], ["memory", sizeText(p.resident_memory_bytes || 0)],
    ["descriptors", exact(p.open_fds || 0) + " of " + count(p.max_fds || 0)], ["threads", exact(p.threads || 0)]];
  keep($("facts"), facts, ([name]) => name, ([name]) => {
    const box = document.createElement("div");
    add(box, "dt", name); add(box, "dd");
    return box;
  }, (box, [, text]) => setText(box.lastElementChild, text));
  const rates = [["messages/s", courseOf("troupe_worker", ["messages"]), count, true], ["CPU", inPercent(courseOf("process", ["cpu_seconds"])), (n) => Math.round(n) + " %", true],
    ["requests/s", courseOf("troupe_http_request", ["duration_seconds"]), count], ["statements/s", courseOf("troupe_database_statement", ["duration_seconds"]), count],
    ["failures/s", courseOf("troupe", ["failures"]), count], ["dead letters/s", courseOf("troupe", ["dead_letters"]), count]];
  keep($("rates"), rates.filter(([, values, , always]) => always || values.some((n) => n > 0)), ([name]) => name, () => {
    const box = document.createElement("div");
    box.append(newLine("line")); add(box, "b"); add(box, "span", "", { className: "soft" });
    return box;
  }, (box, [name, values, text]) => {
    drawLine(box.firstElementChild, values);
    setText(box.children[1], text(recent(values)));
    setText(box.children[2], name);
    box.title = `${name} in the last ${spanText(values.length * 1e9)}`;
  });
}
