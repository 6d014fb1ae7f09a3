"use strict";
// The page is complete without this script. It adds what is under the pointer, the panel with a chunk's story, copying, and reloading.
const facts = JSON.parse(document.getElementById("facts").textContent);
const tip = document.getElementById("tip");
const panel = document.getElementById("panel");
document.documentElement.classList.add("js");

const make = (name, text = "", kind = "") => {
  const element = document.createElement(name);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
};

// --- heat-maps

const cellOf = (values) => {
  const [first, last = 0, status, since = 0, reason = 0, story = 0, counts = 0, example = 0] = values;
  return { first, last: last || first, status, since, reason, story, counts: counts || [[status, 1]], example: example || first };
};

const says = (map, cell) => {
  const one = cell.first === cell.last;
  const lines = [`${map.name}/${one ? cell.first : `${cell.first} to ${cell.last}`}`];
  if (one) lines.push(cell.status + (cell.since ? ` since ${cell.since}` : ""));
  else lines.push(cell.counts.map(([status, count]) => `${count.toLocaleString("en")} ${status}`).join(", "));
  if (!one && cell.counts.length > 1) lines.push(`e.g. ${cell.example}${cell.since ? `, ${cell.since}` : ""}`);
  if (cell.reason) lines.push(cell.reason);
  return lines.join("\n");
};

const showTip = (text, x, y) => {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x - box.width / 2, innerWidth - box.width - 4))}px`;
  tip.style.top = `${y + 10 + box.height > innerHeight ? y - box.height - 48 : y + 10}px`;
};

for (const strip of document.querySelectorAll(".strip")) {
  const map = facts.maps[strip.dataset.map];
  const number = map.cells.length;
  const cursor = make("span", "", "cursor");
  cursor.hidden = true;
  strip.append(cursor);
  let place = number - 1;

  const point = (at) => {
    place = Math.max(0, Math.min(number - 1, at));
    const box = strip.getBoundingClientRect();
    cursor.style.left = `${(place / number) * 100}%`;
    cursor.style.width = `${100 / number}%`;
    cursor.hidden = false;
    showTip(says(map, cellOf(map.cells[place])), box.left + ((place + 0.5) / number) * box.width, box.bottom);
  };
  const leave = () => {
    cursor.hidden = true;
    tip.hidden = true;
  };
  // A cell may be narrower than a pixel: near the pointer, one that needs attention is meant.
  const under = (event) => {
    const box = strip.getBoundingClientRect();
    const at = Math.min(number - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * number)));
    const reach = Math.floor((event.pointerType === "touch" ? 12 : 2) / (box.width / number));
    for (let away = 0; away <= reach; away += 1)
      for (const near of [at - away, at + away])
        if (map.cells[near] && !["READY", "SKIPPED"].includes(map.cells[near][2])) return near;
    return at;
  };
  strip.addEventListener("pointermove", (event) => point(under(event)));
  strip.addEventListener("pointerleave", leave);
  strip.addEventListener("blur", leave);
  strip.addEventListener("focus", () => strip.matches(":focus-visible") && point(place));
  strip.addEventListener("click", (event) => {
    point(under(event));
    openCell(map, cellOf(map.cells[place]));
  });
  strip.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.round(number / 12));
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -page, PageDown: page, Home: -number, End: number };
    if (event.key in moves) point(place + moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") openCell(map, cellOf(map.cells[place]));
    else return;
    event.preventDefault();
  });
}

// --- the panel

const openPanel = (title, content) => {
  const head = make("header");
  const heading = make("h2", title);
  heading.id = "panel-title";
  const close = make("button", "close");
  close.addEventListener("click", () => panel.close());
  head.append(heading, close);
  panel.replaceChildren(head, ...content);
  tip.hidden = true;
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
};

const openStory = (id) => {
  const story = document.getElementById(`story-${id}`);
  if (!story) return false;
  openPanel(story.dataset.title, [...story.cloneNode(true).childNodes]);
  history.replaceState(null, "", `#story-${id}`);
  return true;
};

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

const openCell = (map, cell) => {
  const one = cell.first === cell.last;
  if (one && cell.story && openStory(cell.story)) return;
  const content = says(map, cell).split("\n").slice(1).map((line) => make("p", line));
  if (cell.status !== "missing") {
    const before = /^-/.test(map.name) || /^-/.test(cell.example) ? "-- " : "";
    const command = `odf chunk show ${before}${quoted(map.name)} ${quoted(cell.example)}`;
    const copy = make("button", "copy", "copy");
    copy.dataset.copy = command;
    const line = make("p", one ? "Its story: " : "The story of this one: ");
    line.append(make("code", command), " ", copy);
    content.push(line);
  }
  if (!one && cell.story) {
    const link = make("a", `${map.name}/${cell.example}`);
    link.href = `#story-${cell.story}`;
    const line = make("p", "Its story on this page: ");
    line.append(link);
    content.push(line);
  }
  openPanel(`${map.name}/${one ? cell.first : `${cell.first} to ${cell.last}`}`, content);
};

panel.addEventListener("click", (event) => event.target === panel && panel.close());
panel.addEventListener("close", () => {
  if (location.hash.startsWith("#story-")) history.replaceState(null, "", location.pathname + location.search);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#story-"]');
  if (link && openStory(link.getAttribute("href").slice(7))) event.preventDefault();
  const button = event.target.closest("button[data-copy]");
  if (button) copy(button);
});
document.addEventListener("keydown", (event) => event.key === "Escape" && (tip.hidden = true));
if (location.hash.startsWith("#story-")) openStory(location.hash.slice(7));

const copy = async (button) => {
  const before = button.dataset.label || button.textContent;
  button.dataset.label = before;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  } catch {
    prompt("Copy this command:", button.dataset.copy);
  }
  setTimeout(() => (button.textContent = before), 2000);
};

// --- the age of the page

const age = document.getElementById("age");
const tick = () => {
  const seconds = Math.max(0, Date.now() / 1000 - facts.written);
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const [unit, size] = units.find(([name, length]) => seconds >= 2 * length || name === "s");
  age.textContent = `Written ${Math.floor(seconds / size)} ${unit} ago${facts.every ? `, again every ${facts.every} s` : ""}.`;
  age.classList.toggle("old", facts.every ? seconds > 3 * facts.every + 60 : seconds > 86400);
  // A reader of a story or of selected text is not disturbed.
  if (facts.every && seconds > facts.every && !panel.open && getSelection().isCollapsed) location.reload();
};
tick();
setInterval(tick, Math.min(10, facts.every || 10) * 1000);
