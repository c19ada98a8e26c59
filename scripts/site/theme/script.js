// The site's search, menu, switch of colours, copy buttons, and the mark in the contents of the page.
"use strict";
(() => {
  const page = document.documentElement;
  const root = page.dataset.root;

  // Colours: what the system says, until the switch is used.
  document.querySelector(".colours").addEventListener("click", () => {
    const is_dark = page.dataset.colours ? page.dataset.colours === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    page.dataset.colours = is_dark ? "light" : "dark";
    try { localStorage.setItem("troupe-colours", page.dataset.colours); } catch (none) { /* for this page alone */ }
  });

  const menu = document.querySelector(".menu");
  menu.addEventListener("click", () => menu.setAttribute("aria-expanded", document.body.classList.toggle("menu-open")));
  const current = document.querySelector(".side [aria-current]");
  const side = document.querySelector(".side");
  if (current && current.offsetTop > side.clientHeight - 80) side.scrollTop = current.offsetTop - side.clientHeight / 2;

  for (const block of document.querySelectorAll("pre.code")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.querySelector("code").textContent);
        button.textContent = "copied";
      } catch (none) {
        getSelection().selectAllChildren(block.querySelector("code"));
        button.textContent = "selected";
      }
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
    block.append(button);
  }

  // The heading that one reads now.
  const entries = [...document.querySelectorAll(".contents-of-page a")];
  const targets = entries.map((entry) => document.getElementById(decodeURIComponent(entry.hash.slice(1))));
  let waits = false;
  function mark() {
    waits = false;
    let now = -1;
    targets.forEach((target, at) => { if (target && target.getBoundingClientRect().top < 120) now = at; });
    entries.forEach((entry, at) => entry.classList.toggle("now", at === now));
  }
  addEventListener("scroll", () => { if (!waits) { waits = true; requestAnimationFrame(mark); } }, { passive: true });
  if (entries.length) mark();
  // A link to a place within a folded part opens it.
  function unfold() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest("details");
    if (folded && !folded.open) { folded.open = true; target.scrollIntoView(); }
  }
  addEventListener("hashchange", unfold);
  unfold();

  // Search. words.js sets window.troupe_words: [title, address, section, words, 1 for a symbol].
  const input = document.querySelector(".search input");
  const found = document.querySelector(".found");
  const SHOWN_MAX = 40;
  let rows = null, loads = false, chosen = -1;

  function load() {
    if (rows || loads) return;
    loads = true;
    const script = document.createElement("script");
    script.src = `${root}words.js`;
    script.onload = () => {
      rows = window.troupe_words.map((row) => ({ row, title: row[0].toLowerCase(), section: row[2].toLowerCase(), words: row[3].toLowerCase(),
        depth: row[4] ? row[0].split("::").length : 0 }));
      show();
    };
    document.head.append(script);
  }

  function is_word_at(text, at) { return at === 0 || !/[a-z0-9_]/.test(text[at - 1]); }

  function rank_of_term(one, term) {
    const { title, words, section, depth } = one;
    const last = title.slice(title.lastIndexOf("::") < 0 ? 0 : title.lastIndexOf("::") + 2);
    if (title === term || last === term) return title === term ? 120 : 115 - 15 * depth;
    const at = title.indexOf(term);
    if (at >= 0) return (last.startsWith(term) ? (depth === 1 ? 72 : 60) : is_word_at(title, at) ? 45 : 25);
    const within = words.indexOf(term);
    if (within >= 0) return is_word_at(words, within) ? 10 : 5;
    return section.includes(term) ? 4 : 0;
  }

  function rank(one, terms) {
    let sum = 0;
    for (const term of terms) {
      const points = rank_of_term(one, term);
      if (points === 0) return 0;
      sum += points;
    }
    const place = { Guide: 6, Project: 1, Decisions: -2 }[one.row[2]] ?? 0;
    const names = one.title.split("::");
    const plain = one.row[4] && (!one.words || names.at(-1) === names.at(-2)) ? 20 : 0;  // a constructor, or without a comment
    return sum + place - 4 * (one.depth || 1.5) + (one.row[4] ? 3 : 0) - plain;
  }

  function escape(text) { return text.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]); }

  function marked(text, terms) {
    const forms = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
    return text.split(new RegExp(`(${forms.join("|")})`, "gi")).map((part, at) => (at % 2 ? `<mark>${escape(part)}</mark>` : escape(part))).join("");
  }

  function excerpt(one, terms) {
    const at = terms.map((term) => one.words.indexOf(term)).filter((place) => place >= 0).sort((a, b) => a - b)[0] ?? 0;
    const begin = at < 50 ? 0 : one.row[3].lastIndexOf(" ", at - 30) + 1;
    return (begin ? "… " : "") + one.row[3].slice(begin, begin + 160);
  }

  function show() {
    const terms = input.value.toLowerCase().replace(/troupe::/g, "").replace(/\(\)/g, "").split(/\s+/).filter(Boolean);
    chosen = -1;
    if (!terms.length) { found.hidden = true; return; }
    found.hidden = false;
    if (!rows) { found.innerHTML = "<p>The words are being read …</p>"; return; }
    const best = rows.map((one) => ({ one, points: rank(one, terms) })).filter(({ points }) => points > 0)
      .sort((a, b) => b.points - a.points || a.one.title.length - b.one.title.length).slice(0, SHOWN_MAX);
    found.innerHTML = best.map(({ one }) => `<a href="${root}${one.row[1]}"><small>${escape(one.row[2])}</small>` +
      `<b${one.row[4] ? ' class="symbol"' : ""}>${marked(one.row[0], terms)}</b><span>${marked(excerpt(one, terms), terms)}</span></a>`).join("") ||
      "<p>Nothing has all of these words.</p>";
    choose(0);
  }

  function choose(at) {
    const all = found.querySelectorAll("a");
    if (!all.length) return;
    chosen = (at + all.length) % all.length;
    all.forEach((one, number) => one.setAttribute("aria-selected", number === chosen));
    all[chosen].scrollIntoView({ block: "nearest" });
  }

  input.addEventListener("focus", () => { load(); show(); });
  input.addEventListener("input", () => { load(); show(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { choose(chosen + 1); event.preventDefault(); }
    else if (event.key === "ArrowUp") { choose(chosen - 1); event.preventDefault(); }
    else if (event.key === "Enter") { const link = found.querySelectorAll("a")[chosen]; if (link) link.click(); }
    else if (event.key === "Escape") { input.blur(); found.hidden = true; }
  });
  found.addEventListener("click", (event) => { if (event.target.closest("a")) found.hidden = true; });
  document.addEventListener("click", (event) => { if (!event.target.closest(".search")) found.hidden = true; });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(input|textarea)$/i.test(document.activeElement.tagName)) { input.focus(); event.preventDefault(); }
  });
  // A page that is opened with `?words` searches for them.
  const asked = new URLSearchParams(location.search).get("search");
  if (asked) { input.value = asked; input.focus(); }
})();
