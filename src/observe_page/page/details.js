// ---- the class table ----
const named = (r) => r.name.toLowerCase().includes(state.filter) || (r.handlers || []).some((h) => h.full.toLowerCase().includes(state.filter));
// Beyond these values are red; the legend shows them.
const limits = { busy: 40, p99_ns: 1e7, wait_ns: 1e8, mail: 100, request_s: 1, statement_s: .1 };
const legend = [["busy %", "of classes and handlers", () => "> " + limits.busy + " % of a thread"], ["p99", "of classes and handlers", () => "> " + time(limits.p99_ns)],
  ["wait p99", "the time that messages lie in mailboxes", () => "> " + time(limits.wait_ns)], ["mail", "of an actor", () => "> " + limits.mail + " messages"], ["grows", "of a mailbox", () => "more messages than at the last look"],
  ["p99", "of HTTP routes", () => "> " + time(limits.request_s * 1e9)], ["p99", "of statements", () => "> " + time(limits.statement_s * 1e9)], ["failures, failed, errors", "everywhere", () => "any"]];
function drawLegend() { table($("thresholds"), [["class", "number", (l) => l[0]], ["of", "of", (l) => l[1]], ["at", "red", (l) => l[2]()]], legend, (l) => l[0] + l[1]); }
const handlerColumns = [
  ["rate", "messages/s", (r) => count(r.rate)], ["busy", "busy %", (r) => r.busy.toFixed(1), (r) => r.busy > limits.busy],
  ["p99", "p99", (r) => time(r.p99), (r) => r.p99 > limits.p99_ns], ["wait", "wait p99", (r) => time(r.wait), (r) => r.wait > limits.wait_ns]];
// The course of the number by which the classes are sorted.
const classCourses = { busy: ["troupe_handler", ["busy_seconds", "blocked_seconds"]], alive: ["troupe_class", ["alive"]], suspended: ["troupe_class", ["suspended"]], failures: ["troupe_handler", ["failures"]],
  p99: ["troupe_handler", ["duration_seconds_p99"]], wait: ["troupe_handler", ["wait_seconds_p99"]], rate: ["troupe_handler", ["messages", "resumed"]] };
const courseOfClass = (r) => courseOf(...(classCourses[state.sort] || classCourses.rate), (row) => row.label("class") === r.name);
const classColumns = [
  ["name", "class", (r) => r.name, null, (r) => showClass(r.name)],
  ["alive", "alive", (r) => count(r.alive) + (state.base ? " (" + signed(r.more) + ")" : "")], ...handlerColumns,
  ["suspended", "suspended", (r) => count(r.suspended) + (state.base ? " (" + signed(r.moreSuspended) + ")" : "")],
  ["failures", "failures", (r) => count(r.failures), (r) => r.failures > 0], ["messages", "messages", (r) => exact(r.messages)], ["course", "5 minutes", courseOfClass]];
let classOrder = { by: "", kept: [] };
function drawClasses() {
  if (!state.now) return;
  if (classOrder.by !== state.sort) classOrder = { by: state.sort, kept: [] };
  const all = classes(), by_name = (a, b) => a.name.localeCompare(b.name);
  const list = (state.sort === "name" ? all.sort(by_name) : inStableOrder(classOrder.kept, all.sort(by_name), (r) => r.name, (r) => r[state.sort])).filter(named);
  for (const r of list) r.chosen = state.shown && state.shown.of_class === r.name;
  $("classes-none").hidden = list.length > 0;
  table($("classes"), classColumns, list.slice(0, 300), (r) => r.name, (key) => { if (key !== "course") { state.sort = key; classOrder.by = ""; drawClasses(); writeUrl(false); } });
  const head = $("classes").tHead.rows[0].lastElementChild.firstElementChild;
  head.disabled = true;
  head.title = "The course of the number by which the rows are sorted, in the last five minutes";
}

// ---- drilling down ----
async function ask(path) {
  const got = await fetch(path);
  if (!got.ok) throw new Error(await got.text());
  return got.json();
}
// `shown` says what is shown, and how it is drawn again; a click elsewhere replaces it. Its `url` is its part of the address.
async function show(title, shown) {
  state.shown = shown;
  writeUrl(true);
  $("detail").hidden = false;
  setText($("detail-title"), title);
  $("detail-body").replaceChildren();
  drawClasses();
  await refreshDetail();
  if (state.shown !== shown) return;
  $("detail-title").focus();
  $("detail").scrollIntoView({ block: "nearest" });
}
async function refreshDetail() {
  const shown = state.shown;
  if (!shown || shown.asking || !state.now) return;
  shown.asking = true;
  try {
    const answer = await shown.ask();
    if (state.shown === shown) shown.draw($("detail-body"), answer);
  } catch (wrong) {
    if (state.shown === shown) $("detail-body").replaceChildren(Object.assign(document.createElement("p"), { className: "bad", textContent: String(wrong.message || wrong) }));
  }
  shown.asking = false;
}
function closeDetail() {
  const was = state.shown;
  state.shown = null;
  writeUrl(true);
  $("detail").hidden = true;
  drawClasses();
  const line = was && [...$("classes").tBodies[0].rows].find((one) => one.dataset.key === was.of_class);
  if (line) line.querySelector("button").focus();
}
const actorColumns = (grown) => [
  ["id", "actor", (a) => "#" + a.id, null, (a) => showActor(a.id)], ["class", "class", (a) => a.class], ["given", "name", (a) => a.name || ""],
  ["mail", "mail", (a) => exact(a.mail), (a) => a.mail > limits.mail], ["grows", "grows", (a) => grown(a), (a) => /^\+/.test(grown(a))], ["state", "state", (a) => a.state], ["last", "last handler", (a) => a.last_handler || ""],
  ["waits", "waits for", (a) => (a.waits ? (a.waits.at ? a.waits.at + ": " : "") + a.waits.for + (a.waits.asked ? " (#" + a.waits.asked + ")" : "") : "")], ["since", "since", (a) => (a.waits && a.waits.waits_ns ? time(a.waits.waits_ns) : "")]];
// How the mailboxes of actors have changed between two looks at them.
function growth() {
  const seen = new Map();
  return (a) => {
    const was = seen.get(a.id), now = performance.now();
    if (!was) { seen.set(a.id, { mail: a.mail, at: now, text: "" }); return ""; }
    if (now - was.at > 1500) seen.set(a.id, { mail: a.mail, at: now, text: a.mail === was.mail ? "" : signed(Math.round(1000 * (a.mail - was.mail) / (now - was.at))) + "/s" });
    return seen.get(a.id).text;
  };
}
function showClass(name) {
  let tables = null;
  const columns = actorColumns(growth());
  show("Class " + name, {
    of_class: name, url: { class: name },
    ask: async () => {
      const longest = await ask(`longest?runtime=${state.runtime}&class=${encodeURIComponent(name)}`);
      if (longest.actors.length >= 100) return longest;
      const others = await ask(`actors?runtime=${state.runtime}&class=${encodeURIComponent(name)}`);
      const known = new Set(longest.actors.map((a) => a.id));
      return { actors: longest.actors.concat(others.actors.filter((a) => !known.has(a.id))).slice(0, 100) };
    },
    draw: (box, { actors }) => {
      if (!tables) {
        add(box, "h3", "Handlers");
        const handlers = newTable(box);
        add(box, "h3", "The 100 actors with most mail");
        tables = [handlers, newTable(box)];
      }
      const found = classes().find((c) => c.name === name);
      table(tables[0], [["name", "handler", (h) => h.name], ["p50", "p50", (h) => time(h.p50)], ...handlerColumns, ["failures", "failures", (h) => count(h.failures), (h) => h.failures > 0], ["messages", "messages", (h) => exact(h.messages)]], found ? found.handlers : [], (h) => h.full);
      table(tables[1], columns, actors, (a) => a.id);
    } });
}
function showActor(id) {
  const mail = [];
  let parts = null;
  show("Actor #" + id, {
    of_class: "", url: { actor: id },
    ask: () => ask(`actor?runtime=${state.runtime}&id=${id}`),
    draw: (box, story) => {
      if (!parts) parts = { said: add(box, "p"), line: add(box, "p", undefined, { className: "soft" }), calls: newTable(box) };
      const a = story.actor;
      if (!a) return void setText(parts.said, "It has ended.");
      state.shown.of_class = a.class;
      mail.push([performance.now(), a.mail]);
      if (mail.length > 60) mail.shift();
      const [since, first] = mail[0], span = (performance.now() - since) / 1000;
      setText(parts.said, `${a.class} #${a.id}${a.name ? ` "${a.name}"` : ""} is ${a.state}.${a.last_handler ? ` Its last handler was ${a.last_handler}.` : ""}${a.parent ? ` It is a child of #${a.parent}.` : ""} ${exact(a.mail)} messages wait in its mailbox` + (span > 1 ? `, ${signed(Math.round((a.mail - first) / span))}/s.` : "."));
      setText(parts.line, "mail: " + mail.map(([, n]) => n).slice(-12).join(", ") + ". Suspended calls: " + exact(story.suspended) + (story.suspended > story.calls.length ? `, of which ${story.calls.length} are listed.` : "."));
      const kinds = new Map();
      for (const c of story.calls) {
        const key = [c.handler, c.at, c.for, c.asked || ""].join("\u0000");
        if (!kinds.has(key)) kinds.set(key, { ...c, key, calls: 0 });
        ++kinds.get(key).calls;
      }
      table(parts.calls, [["handler", "handler", (c) => c.handler], ["at", "waits at", (c) => c.at || "–"], ["for", "for", (c) => c.for], ["asked", "of", (c) => (c.asked ? "#" + c.asked : ""), null, (c) => c.asked && showActor(c.asked)], ["calls", "calls", (c) => exact(c.calls)]], [...kinds.values()], (c) => c.key);
    } });
}

// ---- mailboxes, waits ----
const mailColumns = actorColumns(growth()), mailOrder = [], waitOrder = [];
const waitKey = (w) => [w.class, w.handler, w.at, w.for, w.of_class].join("\u0000");
function drawMail(answer) { $("mail-none").hidden = answer.actors.length > 0; table($("mail"), mailColumns, inStableOrder(mailOrder, answer.actors.slice(0, 10), (a) => a.id, (a) => a.mail), (a) => a.id); }
function drawWaits(answer) {
  $("waits-none").hidden = answer.waits.length > 0;
  table($("waits"), [["class", "class", (w) => w.class, null, (w) => showClass(w.class)], ["handler", "handler", (w) => w.handler], ["at", "waits at", (w) => w.at || "–"], ["for", "for", (w) => w.for],
    ["calls", "calls", (w) => exact(w.calls)], ["first", "for example", (w) => (w.first ? "#" + w.first : ""), null, (w) => w.first && showActor(w.first)]],
  inStableOrder(waitOrder, answer.waits, waitKey, (w) => w.calls).slice(0, 100), waitKey);
}

// ---- the graph ----
const pair = (a, b) => a + "\u0000" + b;
// The classes that wait for each other in a cycle, by the edges of `waits`: strongly connected parts (Tarjan).
function cyclesOf(waits) {
  const next = new Map();
  for (const w of waits) if (w.of_class) { if (!next.has(w.class)) next.set(w.class, new Set()); next.get(w.class).add(w.of_class); }
  const number = new Map(), low = new Map(), stack = [], found = [];
  const visit = (node) => {
    number.set(node, number.size); low.set(node, number.get(node)); stack.push(node);
    for (const to of next.get(node) || []) {
      if (!number.has(to)) { visit(to); low.set(node, Math.min(low.get(node), low.get(to))); }
      else if (stack.includes(to)) low.set(node, Math.min(low.get(node), number.get(to)));
    }
    if (low.get(node) !== number.get(node)) return;
    const part = stack.splice(stack.indexOf(node));
    if (part.length > 1 || (next.get(node) || new Set()).has(node)) found.push(part);
  };
  for (const node of next.keys()) if (!number.has(node)) visit(node);
  return found;
}
function rates() {
  const old = new Map(((own(from()) || {}).edges || []).map((e) => [pair(e.from, e.to) + e.handler, e.messages])), sums = new Map();
  for (const e of own(state.now).edges || []) {
    const key = pair(e.from, e.to);
    sums.set(key, (sums.get(key) || 0) + (e.messages - (old.get(key + e.handler) || 0)) / seconds());
  }
  return sums;
}
// From one node to the other, with the head of an arrow at its end; and where its text lies.
function pathBetween([x1, y1], [x2, y2], bend) {
  if (x1 === x2 && y1 === y2) return [`M${x1} ${y1} c-44 -56 44 -56 0 0`, x1, y1 - 46];
  const cx = (x1 + x2) / 2 + (y2 - y1) * bend, cy = (y1 + y2) / 2 - (x2 - x1) * bend;
  const long = Math.hypot(x2 - cx, y2 - cy) || 1, ux = (x2 - cx) / long, uy = (y2 - cy) / long, ex = x2 - 9 * ux, ey = y2 - 9 * uy;
  const head = `M${ex - 8 * ux + 4 * uy} ${ey - 8 * uy - 4 * ux} L${ex} ${ey} L${ex - 8 * ux - 4 * uy} ${ey - 8 * uy + 4 * ux}`;
  return [`M${x1} ${y1} Q${cx} ${cy} ${ex} ${ey} ${head}`, (x1 + 2 * cx + x2) / 4, (y1 + 2 * cy + y2) / 4 - 3];
}
function drawGraph() {
  const waits = state.now.waits ? state.now.waits.waits : [], children = state.now.waits ? state.now.waits.children : [];
  const cycles = cyclesOf(waits), inCycle = new Map(cycles.flatMap((part, i) => part.map((node) => [node, i])));
  const edges = [...rates()].sort((a, b) => b[1] - a[1]).slice(0, 60).map(([key, rate]) => [...key.split("\u0000"), rate]);
  const nodes = [...new Set([...inCycle.keys(), ...edges.flatMap(([a, b]) => [a, b]), ...children.flatMap((c) => [c.parent, c.child])])].slice(0, 18).sort();
  $("graph-none").hidden = nodes.length > 0;
  $("graph-says").hidden = !nodes.length;
  $("graph").style.display = nodes.length ? "" : "none";
  const width = $("graph").clientWidth || 640, height = Math.min(440, Math.max(300, width * 0.6));
  const at = new Map(nodes.map((node, i) => {
    const turn = 2 * Math.PI * i / Math.max(nodes.length, 1) - Math.PI / 2;
    return [node, [width / 2 + (width / 2 - 70) * Math.cos(turn), height / 2 + (height / 2 - 34) * Math.sin(turn)]];
  }));
  $("graph").setAttribute("viewBox", `0 0 ${width} ${height}`);
  $("graph").style.height = height + "px";
  const svg = "http://www.w3.org/2000/svg", most = Math.max(1e-9, ...edges.map((e) => e[2])), lines = [];
  for (const [a, b, rate] of edges) lines.push({ key: "e" + pair(a, b), a, b, bend: .12, kind: "edge", width: .7 + 4 * rate / most, title: `${a} → ${b}: about ${count(rate)} messages/s`, rate: rate > 0 && a !== "outside" ? count(rate) + "/s" : "" });
  for (const c of children) lines.push({ key: "c" + pair(c.parent, c.child), a: c.parent, b: c.child, bend: -.1, kind: "child", width: 1.5, title: `${c.child}: children of ${c.parent}` });
  for (const key of new Set(waits.filter((w) => inCycle.has(w.class) && inCycle.get(w.class) === inCycle.get(w.of_class)).map((w) => pair(w.class, w.of_class)))) {
    const [a, b] = key.split("\u0000");
    lines.push({ key: "w" + key, a, b, bend: .12, kind: "cycle", width: 3, title: `calls of ${a} wait for ${b}` });
  }
  const make = (tag) => document.createElementNS(svg, tag);
  keep($("graph"), [...lines.filter((l) => at.has(l.a) && at.has(l.b)), ...nodes.map((node) => ({ key: "n" + node, node }))], (one) => one.key, (one) => {
    const group = make("g");
    if (!one.node) { group.append(make("title"), make("path"), make("text")); return group; }
    group.setAttribute("class", "node"); group.setAttribute("tabindex", "0"); group.setAttribute("role", "button");
    group.append(make("circle"), make("text"));
    const open = () => showClass(one.node);
    group.addEventListener("click", open);
    group.addEventListener("keydown", (key) => { if (key.key === "Enter" || key.key === " ") { key.preventDefault(); open(); } });
    return group;
  }, (element, one) => {
    const set = (to, all) => { for (const [key, value] of Object.entries(all)) to.setAttribute(key, value); };
    if (!one.node) {
      const [d, x, y] = pathBetween(at.get(one.a), at.get(one.b), one.bend);
      set(element.children[1], { d, class: one.kind, "stroke-width": one.width.toFixed(1) });
      set(element.children[2], { x, y, class: "rate" });
      setText(element.children[2], one.rate || "");
      return setText(element.firstElementChild, one.title);
    }
    const [x, y] = at.get(one.node), red = inCycle.has(one.node), label = one.node.length > 22 ? one.node.slice(0, 21) + "…" : one.node;
    set(element, { "aria-label": one.node + (red ? ", in a cycle of waits" : "") });
    set(element.children[0], { cx: x, cy: y, r: 7, fill: red ? "var(--bad)" : "var(--text)" });
    set(element.children[1], { x: Math.min(width - 60, Math.max(60, x)), y: y + (y < height / 2 ? -12 : 22), "text-anchor": "middle" });
    setText(element.children[1], label);
  });
  keep($("cycles"), cycles, (part) => part.join("\u0000"), (part) => {
    const line = document.createElement("p");
    line.className = "bad";
    add(line, "span", "A cycle of waits: ");
    part.forEach((node) => { add(line, "button", node, { className: "plain", onclick: () => showClass(node) }); add(line, "span", " → "); });
    add(line, "span", part[0] + ". Calls wait for each other, and none of them can end before the others.");
    return line;
  }, () => {});
  setText($("graph-basis"), state.base ? "since the moment chosen" : "in the last second");
}

// ---- the flame view ----
function treeOf(moment, old) {
  const was = new Map();
  for (const t of old ? old.threads : []) for (const c of t.classes) for (const h of c.handlers) {
    was.set(pair(t.worker, c.class) + h.handler, h.busy_ns + h.blocked_ns);
    for (const s of h.spans || []) was.set(pair(t.worker, c.class) + pair(h.handler, s.span), s.busy_ns);
  }
  const grown = (key, now) => Math.max(0, now - (was.get(key) || 0));
  return moment.threads.map((t) => ({ name: t.worker ? "worker " + t.worker : "others", worker: t.worker, parts: t.classes.map((c) => ({
    name: c.class, of_class: c.class, parts: c.handlers.map((h) => ({ name: shortName(h.handler, c.class), of_class: c.class, busy: grown(pair(t.worker, c.class) + h.handler, h.busy_ns + h.blocked_ns),
      parts: (h.spans || []).map((s) => ({ name: s.span, of_class: c.class, parts: [], busy: grown(pair(t.worker, c.class) + pair(h.handler, s.span), s.busy_ns) })) })) })) }));
}
function sumUp(node) {
  // A handler has time of its own beside that of its spans, which is estimated: it is not less.
  if (node.parts.length) node.busy = Math.max(node.busy || 0, node.parts.reduce((n, part) => n + sumUp(part), 0));
  node.parts = node.parts.filter((part) => part.busy > 0).sort((a, b) => b.busy - a.busy);
  return node.busy || 0;
}
function addIdle(node, since) {
  if (!node.worker) return;
  const now = own(state.now).workers[node.worker - 1], was = since && own(since).workers[node.worker - 1];
  const idle = Math.max(0, now.idle_ns - (was ? was.idle_ns : 0));
  node.parts.push({ name: "idle", is_idle: true, parts: [], busy: idle });
  node.busy = (node.busy || 0) + idle;
}
function drawFlame() {
  const since = from();
  if (!state.now.threads) return;
  const tree = treeOf(state.now.threads, since && since.threads), all = tree.reduce((n, node) => n + sumUp(node), 0) || 1;
  for (const node of tree) addIdle(node, since);
  const draw = (parent, nodes, path) => keep(parent, nodes, (node) => node.name, (node) => {
    const one = document.createElement("div");
    one.className = "flame";
    add(one, "button", undefined, { onclick: () => one.node.of_class && showClass(one.node.of_class) });
    add(one, "div", undefined, { className: "flames" });
    return one;
  }, (one, node) => {
    one.node = node;
    one.style.flex = `${Math.max(node.busy, 1)} 1 0`;
    one.style.setProperty("--heat", node.is_idle ? "0%" : Math.round(15 + 70 * Math.min(1, node.busy / all)) + "%");
    const says = `${node.name}: ${(node.busy / 1e7 / seconds()).toFixed(1)} % of a thread`;
    setText(one.firstElementChild, node.name);
    one.firstElementChild.title = path + says;
    one.firstElementChild.setAttribute("aria-label", path + says);
    // What is narrower than a letter is no stop for the keyboard.
    one.firstElementChild.tabIndex = node.busy / all > 0.02 ? 0 : -1;
    draw(one.lastElementChild, node.parts, path + node.name + " → ");
  });
  draw($("flame"), tree.filter((node) => node.busy > 0), "");
}

// ---- I/O, lazies, timers ----
function drawKinds() {
  const now = own(state.now), was = own(from());
  const part = (id, name, counted, columns) => {
    const rows = (now[id] || []).filter((one) => one[counted] > 0).map((one) => {
      const old = ((was && was[id]) || []).find((o) => o[name] === one[name]);
      return { ...one, rate: (key) => Math.max(0, one[key] - (old ? old[key] : 0)) / seconds() };
    });
    $(id + "-part").hidden = !rows.length;
    if (rows.length) table($(id), [["name", name, (r) => r[name]], ["rate", "/s", (r) => count(r.rate(counted))], ...columns], rows, (r) => r[name]);
  };
  const times = [["p50", "p50", (r) => time(r.p50_ns)], ["p99", "p99", (r) => time(r.p99_ns)]];
  part("io", "operation", "done", [["bytes", "bytes/s", (r) => count(r.rate("bytes"))], ...times, ["errors", "errors", (r) => exact(r.errors), (r) => r.errors > 0],
    ["cancelled", "cancelled", (r) => exact(r.cancelled)], ["done", "all", (r) => exact(r.done)]]);
  part("lazies", "lazy", "computed", [["busy", "busy %", (r) => (r.rate("busy_ns") / 1e7).toFixed(1)], ...times, ["stolen", "stolen", (r) => exact(r.stolen)], ["computed", "all", (r) => exact(r.computed)]]);
  part("timers", "source", "armed", [["armed", "armed", (r) => exact(r.armed)], ["expired", "expired", (r) => exact(r.expired)], ["cancelled", "cancelled", (r) => exact(r.cancelled)]]);
}

// ---- declared numbers ----
const countOf = (value) => (value && value.counts ? value.counts.reduce((n, one) => n + one, 0) : Number(value) || 0);
function quantileOf(value, bounds, part) {
  const all = countOf(value);
  let seen = 0;
  for (let i = 0; i < bounds.length; ++i) if ((seen += value.counts[i]) >= part * all) return bounds[i];
  return bounds[bounds.length - 1] || 0;
}
const inUnit = (number, unit) => (unit === "seconds" ? time(number * 1e9) : Number.isInteger(number) ? exact(number) : count(number));
// A table for each kind of thing, with a row for each thing that has counted; its columns are the numbers.
function drawNumbers() {
  const all = state.now.numbers, since = from(), then = since && since.numbers;
  const of_runtime = (table) => table.rows.filter((row) => !table.labels.includes("runtime") || row.labels[table.labels.indexOf("runtime")] === String(state.runtime));
  const list = (all ? all.tables : []).filter((table) => !ownTables.includes(table.prefix)).map((table) => ({ ...table, key: table.prefix + " " + table.labels.join(" ") + " " + table.numbers[0].name,
    rows: of_runtime(table).filter((row) => row.values.some((value) => countOf(value) > 0)) })).filter((table) => table.rows.length);
  $("numbers-part").hidden = !list.length;
  const took = then ? Math.max(1e-3, (all.now_ns - then.now_ns) / 1e9) : 0;
  keep($("numbers"), list, (one) => one.key, (one) => {
    const box = document.createElement("div");
    box.title_ = add(box, "h3", one.prefix);
    box.table_ = newTable(box);
    return box;
  }, (box, one) => {
    const was = then && then.tables.find((other) => other.prefix === one.prefix && other.labels.join() === one.labels.join() && other.numbers[0].name === one.numbers[0].name);
    const old = new Map((was ? was.rows : []).map((row) => [row.labels.join("\u0000"), row.values]));
    const rate = (row, i) => { const before = old.get(row.labels.join("\u0000")); return took && before ? count(Math.max(0, countOf(row.values[i]) - countOf(before[i])) / took) + "/s" : "–"; };
    const named = (row) => row.labels.filter((label, i) => label && one.labels[i] !== "runtime").join(" ") || "this program";
    const columns = [["name", one.labels.filter((label) => label !== "runtime").join(", ") || "number", named]];
    one.numbers.forEach((number, i) => {
      const title = number.name.replace(/_/g, " ");
      if (number.kind === "histogram") columns.push([number.name + "/s", "/s", (row) => rate(row, i)], [number.name, "count", (row) => exact(countOf(row.values[i]))],
        [number.name + "50", "p50", (row) => inUnit(quantileOf(row.values[i], number.bounds, .5), number.unit)], [number.name + "99", title + " p99", (row) => inUnit(quantileOf(row.values[i], number.bounds, .99), number.unit)]);
      else columns.push([number.name, title, (row) => inUnit(Number(row.values[i]) || 0, number.unit) + (number.kind === "counter" && countOf(row.values[i]) ? " · " + rate(row, i) : "")]);
    });
    table(box.table_, columns, firstOf(box.table_, one.rows), named);
    one.numbers.forEach((number) => columns.forEach(([key], i) => { if (key.startsWith(number.name)) box.table_.tHead.rows[0].cells[i].title = number.help; }));
  });
}

// ---- HTTP routes, statements ----
const ownTables = ["troupe_http_request", "troupe_database_statement"];
// The rows of one table of numbers, added up by the labels that `keyOf` names, since the moment before: those that fail or
// are slow come first.
function timesBy(prefix, slow, keyOf) {
  const at = (moment) => ((moment && moment.numbers) || { tables: [] }).tables.find((one) => one.prefix === prefix);
  const now = at(state.now), then = at(from()), all = new Map();
  if (!now) return [];
  const took = Math.max(1e-3, from() && from().numbers ? (state.now.numbers.now_ns - from().numbers.now_ns) / 1e9 : own(state.now).up_ns / 1e9);
  const old = new Map((then ? then.rows : []).map((row) => [row.labels.join("\u0000"), row.values]));
  const bounds = now.numbers[0].bounds;
  for (const row of now.rows) {
    const label = (name) => row.labels[now.labels.indexOf(name)] || "";
    if (now.labels.includes("runtime") && label("runtime") !== String(state.runtime)) continue;
    const key = keyOf(label), was = old.get(row.labels.join("\u0000"));
    if (!all.has(key)) all.set(key, { name: key, bounds, value: { counts: bounds.map(() => 0).concat(0) }, recent: 0, failed: 0, took, label });
    const sum = all.get(key);
    row.values[0].counts.forEach((n, i) => { sum.value.counts[i] += n; });
    sum.recent += countOf(row.values[0]) - (was ? countOf(was[0]) : 0);
    if (label("status") >= "500") sum.failed += countOf(row.values[0]);
    if (row.values.length > 1) sum.failed += countOf(row.values[1]);
  }
  const p99 = (sum) => quantileOf(sum.value, bounds, .99), isBad = (sum) => Number(sum.failed > 0 || p99(sum) > slow);
  return [...all.values()].filter((sum) => countOf(sum.value)).sort((a, b) => isBad(b) - isBad(a) || p99(b) - p99(a) || a.name.localeCompare(b.name));
}
const timesColumns = (title, slow, prefix, fits) => [["name", title, (r) => r.name], ["rate", "/s", (r) => count(Math.max(0, r.recent) / r.took)],
  ["p50", "p50", (r) => "≤ " + time(quantileOf(r.value, r.bounds, .5) * 1e9)], ["p99", "p99", (r) => "≤ " + time(quantileOf(r.value, r.bounds, .99) * 1e9), (r) => quantileOf(r.value, r.bounds, .99) > slow],
  ["failed", "failed", (r) => exact(r.failed), (r) => r.failed > 0], ["all", "all", (r) => exact(countOf(r.value))],
  ["course", "p99, 5 minutes", (r) => courseOf(prefix, ["duration_seconds_p99"], fits(r))]];
function drawTimes(id, columns, rows) {
  $(id + "-part").hidden = !rows.length;
  if (rows.length) table($(id), columns, firstOf($(id), rows), (r) => r.name);
}
function drawRoutes() { drawTimes("routes", timesColumns("route", limits.request_s, "troupe_http_request", (r) => (row) => row.label("method") + " " + row.label("route") === r.name), timesBy("troupe_http_request", limits.request_s, (label) => label("method") + " " + label("route"))); }
function drawStatements() { drawTimes("statements", timesColumns("statement", limits.statement_s, "troupe_database_statement", (r) => (row) => row.label("statement") + " (" + row.label("database") + ")" === r.name), timesBy("troupe_database_statement", limits.statement_s, (label) => label("statement") + " (" + label("database") + ")")); }

// ---- the address ----
// It says what is shown, so that it can be kept and sent on; Back leads to what was open before.
function urlOfState() {
  const to = new URLSearchParams(state.shown ? state.shown.url : {});
  if (state.runtime) to.set("runtime", state.runtime);
  if (state.sort !== "busy") to.set("sort", state.sort);
  if (state.filter) to.set("filter", state.filter);
  for (const name of state.opened) to.append("trouble", name);
  const text = to.toString();
  return location.pathname + (text ? "?" + text : "");
}
let readsUrl = false;
function writeUrl(is_step) {
  if (readsUrl || location.pathname + location.search === urlOfState()) return;
  is_step ? history.pushState(null, "", urlOfState()) : history.replaceState(null, "", urlOfState());
}
function readUrl() {
  const from = new URLSearchParams(location.search), was = state.runtime;
  readsUrl = true;
  state.runtime = Number(from.get("runtime")) || 0;
  state.sort = classColumns.some(([key]) => key === from.get("sort")) ? from.get("sort") : "busy";
  state.filter = $("filter").value = from.get("filter") || "";
  state.filter = state.filter.toLowerCase();
  state.opened = new Set(from.getAll("trouble"));
  for (const line of $("warning-list").children) line.firstElementChild.open = state.opened.has(warningName(line.item));
  const shown = JSON.stringify(state.shown ? state.shown.url : {});
  if (from.has("class")) { if (shown !== JSON.stringify({ class: from.get("class") })) showClass(from.get("class")); }
  else if (from.has("actor")) { if (shown !== JSON.stringify({ actor: from.get("actor") })) showActor(from.get("actor")); }
  else if (from.has("node")) { if (shown !== JSON.stringify({ node: from.get("node") })) showNode(from.get("node")); }
  else if (state.shown) closeDetail();
  readsUrl = false;
  if (state.runtime !== was) changeRuntime();
  else if (state.now) draw();
}
window.addEventListener("popstate", readUrl);

// ---- moments ----
function draw() {
  if (!state.now || !own(state.now)) return;
  setText($("title"), state.now.program + " (" + state.now.pid + ")");
  const clock = (moment) => new Date(moment.seen_at).toLocaleTimeString();
  setText($("basis"), state.base ? `changes and rates from ${clock(state.base)} to ${clock(state.now)}` : state.frozen ? "frozen at " + clock(state.now) : "live");
  drawRuntimes(); drawHead(); drawFlame(); drawGauges(); drawWarnings(); drawWorkers(); drawCluster(); drawClasses(); drawGraph(); drawKinds(); drawNumbers(); drawRoutes(); drawStatements();
  if (state.now.longest) drawMail(state.now.longest);
  if (state.now.waits) drawWaits(state.now.waits);
}
function drawRuntimes() {
  $("runtimes").hidden = state.now.runtimes.length < 2;
  keep($("runtime"), state.now.runtimes.map((_, i) => i), (i) => i, (i) => new Option(String(i), String(i)), () => {});
  $("runtime").value = String(state.runtime);
}
$("freeze").onclick = () => {
  state.frozen = !state.frozen;
  $("freeze").setAttribute("aria-pressed", state.frozen);
  draw();
};
$("compare").onclick = () => {
  state.base = state.base ? null : state.now;
  $("compare").setAttribute("aria-pressed", Boolean(state.base));
  draw();
};
$("trace").onclick = async () => {
  const seconds = Number($("seconds").value), button = $("trace");
  button.disabled = true;
  setText(button, "Recording …");
  try {
    const got = await fetch("trace?seconds=" + seconds), text = await (got.ok ? got.blob() : got.text());
    if (!got.ok) throw new Error(text);
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(text), download: `${state.now ? state.now.program : "program"}-trace.json` });
    link.click();
    setText($("notice"), "The trace is downloaded; open it in ui.perfetto.dev.");
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  } catch (wrong) {
    setText($("notice"), "No trace: " + (wrong.message || wrong));
  }
  button.disabled = false;
  setText(button, "Download");
};
$("filter").oninput = () => { state.filter = $("filter").value.toLowerCase(); writeUrl(false); if (state.now) drawClasses(); };
$("close").onclick = closeDetail;
document.addEventListener("keydown", (key) => {
  const writes = key.target.closest("input, select, textarea");
  if (key.key === "Escape" && state.shown && !writes) closeDetail();
  if (key.key !== "/" || writes || key.ctrlKey || key.metaKey || key.altKey) return;
  key.preventDefault();
  $("filter").focus();
});
function changeRuntime() {
  state.now = state.before = state.base = null;
  course.times = [];
  course.tables.clear();
  closeSource();
  listen();
}
function showRuntime(runtime) {
  if (runtime === state.runtime) return;
  if (state.shown) closeDetail();
  state.runtime = runtime;
  writeUrl(true);
  changeRuntime();
}
$("runtime").onchange = () => showRuntime(Number($("runtime").value));
window.addEventListener("resize", () => { if (state.now) drawGraph(); });

// A moment has the course of its last seconds. That of the five minutes before is asked for once, and again after a gap.
let asksCourse = false;
async function takeNewest(newest) {
  if (!newest) return;
  const last = course.times[course.times.length - 1];
  if (last && (newest.times_ns.length === 0 || newest.times_ns[0] <= last + 1.5e9)) return takeCourse(newest);
  if (asksCourse) return;
  asksCourse = true;
  try {
    const whole = await ask("history?runtime=" + state.runtime), kept = course.times;
    if (kept === course.times) { course.times = []; course.tables.clear(); takeCourse(whole); }
    if (state.now && !state.frozen) draw();
  } catch (wrong) { /* the next moment asks again */ }
  asksCourse = false;
}
// The server sends what belongs to one moment in one event.
function closeSource() { if (source) source.close(); }
function listen() {
  source = new EventSource("events?runtime=" + state.runtime);
  source.onmessage = (message) => {
    if (state.lost) setText($("notice"), "");
    state.lost = false;
    if (state.frozen) return;
    const { summary, longest, waits, threads, numbers, history: newest } = JSON.parse(message.data);
    takeNewest(newest);
    if (!state.now || state.now.now_ns !== summary.now_ns) state.before = state.now;
    state.now = { ...summary, longest, waits, threads, numbers, seen_at: Date.now() };
    draw();
    refreshDetail();
  };
  source.addEventListener("ended", () => {
    closeSource();
    // The address may name a runtime that the program does not have.
    if (state.runtime === 0 || state.now) return setText($("notice"), "The program has ended.");
    state.runtime = 0;
    writeUrl(false);
    listen();
  });
  source.onerror = () => { state.lost = true; setText($("notice"), "No connection to the page's server."); };
}
drawLegend();
readUrl();
if (!source) listen();
