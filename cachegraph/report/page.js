"use strict";
// Texts in the data were written by others: they become text nodes and attributes, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const section = (id) => document.getElementById(id);
const note = (text) => html("p", {class: "note"}, text);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const percent = (part, whole) => (whole ? `${(100 * part / whole).toFixed(1)} %` : "–");
const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many || one + "s"}`;
const clock = (at) => new Date(1000 * at).toLocaleString("sv");

function seconds(value) {
  if (value < 0) return `-${seconds(-value)}`;
  if (value === 0) return "0 s";
  for (const [limit, factor, unit] of [[1e-3, 1e6, "µs"], [1, 1e3, "ms"], [120, 1, "s"], [7200, 1 / 60, "min"]])
    if (value < limit) return `${Number((value * factor).toPrecision(3))} ${unit}`;
  return `${(value / 3600).toFixed(1)} h`;
}

function size(value) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 999.5) return `${unit === "B" ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

// A column: {name, value: row -> what sorts, show: row -> text or node, number}. A click on a name sorts.
function table(columns, rows, sortedBy = -1) {
  const body = html("tbody", {});
  const heads = columns.map((column, place) => {
    const head = html("th", {"aria-sort": "none", class: column.number ? "number" : "", tabindex: "0"}, column.name);
    head.addEventListener("click", () => sort(place));
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort(place));
    return head;
  });
  function draw(shown) {
    body.replaceChildren(...shown.map((row) => html("tr", {}, ...columns.map((column) =>
      html("td", {class: column.number ? "number" : column.class || ""}, column.show ? column.show(row) : String(column.value(row)))))));
  }
  function sort(place) {
    const falling = heads[place].getAttribute("aria-sort") !== "descending";
    const value = columns[place].value;
    const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[place].setAttribute("aria-sort", falling ? "descending" : "ascending");
    rows = [...rows].sort((a, b) => (falling ? order(b, a) : order(a, b)));
    draw(rows);
  }
  draw(rows);
  if (sortedBy >= 0) heads[sortedBy].setAttribute("aria-sort", "descending");
  const whole = html("div", {class: "scroll"}, html("table", {}, html("thead", {}, html("tr", {}, ...heads)), body));
  whole.filter = (text) => draw(rows.filter((row) => columns.some((column) => String(column.value(row)).toLowerCase().includes(text))));
  return whole;
}

const legend = (items) => html("div", {class: "legend"}, ...items.map(([name, color]) =>
  html("span", {}, html("i", {style: `background:${color}`}), name)));

// Bars by day: `parts(day)` are [name, value, color], stacked upwards, and downwards where a value is negative.
function chart(days, parts, show) {
  const width = 1100, height = 210, left = 64, bottom = 22, top = 12;
  const stacks = days.map(parts);
  const high = Math.max(...stacks.map((stack) => sum(stack.map((part) => Math.max(part[1], 0)))), 1e-9);
  const low = Math.max(...stacks.map((stack) => sum(stack.map((part) => Math.max(-part[1], 0)))), 0);
  const scale = (height - bottom - top) / (high + low), zero = top + high * scale;
  const step = (width - left) / days.length, bar = Math.min(step * 0.8, 46);
  const marks = [];
  for (const value of low ? [high, 0, -low] : [high, high / 2, 0]) {
    const y = zero - value * scale;
    marks.push(svg("line", {class: "axis", x1: left, x2: width, y1: y, y2: y}),
      svg("text", {x: left - 8, y: y + 4, "text-anchor": "end"}, show(Math.abs(value))));
  }
  const every = Math.ceil(days.length / 12);
  days.forEach((day, place) => {
    const x = left + step * place + (step - bar) / 2;
    let up = zero, down = zero;
    for (const [name, value, color] of stacks[place]) {
      if (!value) continue;
      const length = Math.abs(value) * scale, y = value > 0 ? (up -= length) : down;
      if (value < 0) down += length;
      marks.push(svg("rect", {x, y, width: bar, height: length, fill: color},
        svg("title", {}, `${day.day}: ${name} ${show(Math.abs(value))}`)));
    }
    if (place % every === 0)
      marks.push(svg("text", {x: x + bar / 2, y: height - 6, "text-anchor": "middle"}, day.day.slice(5)));
  });
  return html("div", {class: "wide"}, svg("svg", {class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img"}, ...marks));
}

function drawHead() {
  section("origin").append(`${data.directory} · ${clock(data.made)} · cachegraph ${data.version}`);
  section("problems").append(...data.problems.map((text) => html("p", {class: "problem"}, text)));
  const root = document.documentElement, names = ["system", "light", "dark"];
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = "system";
  const apply = () => {
    root.dataset.theme = chosen === "system" ? (system.matches ? "dark" : "light") : chosen;
    section("theme").textContent = `theme: ${chosen}`;
  };
  section("theme").addEventListener("click", () => { chosen = names[(names.indexOf(chosen) + 1) % 3]; apply(); });
  system.addEventListener("change", apply);
  apply();
}

function drawCards() {
  const hits = sum(data.levels.map((level) => level.hits || 0)), misses = sum(data.levels.map((level) => level.misses || 0));
  const saved = sum(data.levels.map((level) => level.seconds_saved || 0)), spent = sum(data.levels.map((level) => level.seconds_spent || 0));
  const bypasses = sum(data.reasons.filter((reason) => reason.outcome === "bypass").map((reason) => reason.count));
  const cards = [
    [percent(hits, hits + misses), `hits: ${hits.toLocaleString("en")} of ${plural(hits + misses, "look-up")}`],
    [seconds(saved), "saved by hits"],
    [seconds(spent), "spent on misses"],
    [size(data.totals.held || 0), `stored; ${size(data.totals.disk || 0)} on the disk`],
    [sum(data.levels.map((level) => level.entries)).toLocaleString("en"), "entries"],
    [bypasses.toLocaleString("en"), "bypasses: compiled without the cache"],
  ];
  section("cards").append(...cards.map(([value, name]) => html("div", {class: "card"}, html("b", {}, value), html("span", {}, name))));
}

function drawDays() {
  const days = data.days;
  if (!days.length) {
    for (const id of ["days", "seconds"]) section(id).append(note("Nothing is counted yet: each process writes its counts when it ends."));
    return;
  }
  const reasons = [...new Set(days.flatMap((day) => Object.keys(day.misses)))].sort();
  const color = (reason) => `var(--c${reasons.indexOf(reason) % 6})`;
  const parts = (day) => [["hits", day.hits, "var(--hit)"], ...reasons.map((reason) => [`miss, ${reason}:`, -(day.misses[reason] || 0), color(reason)])];
  const total = (day) => sum(Object.values(day.misses));
  section("days").append(
    legend([["hits (upwards)", "var(--hit)"], ...reasons.map((reason) => [`miss: ${reason}`, color(reason)])]),
    chart(days, parts, (value) => Math.round(value).toLocaleString("en")),
    html("details", {}, html("summary", {}, `${plural(days.length, "day")} as a table`), table([
      {name: "day (UTC)", value: (day) => day.day},
      {name: "hits", number: true, value: (day) => day.hits},
      {name: "misses", number: true, value: total},
      {name: "bypasses", number: true, value: (day) => day.bypasses},
      {name: "hits of look-ups", number: true, value: (day) => day.hits / Math.max(day.hits + total(day), 1), show: (day) => percent(day.hits, day.hits + total(day))},
      {name: "saved", number: true, value: (day) => day.saved, show: (day) => seconds(day.saved)},
      {name: "spent", number: true, value: (day) => day.spent, show: (day) => seconds(day.spent)},
    ], days)));
  section("seconds").append(
    legend([["saved by hits (upwards)", "var(--hit)"], ["spent on misses (downwards)", "var(--miss)"]]),
    chart(days, (day) => [["saved", day.saved, "var(--hit)"], ["spent", -day.spent, "var(--miss)"]], seconds));
}

function drawReasons() {
  const rows = data.reasons, most = Math.max(...rows.map((row) => row.count), 1);
  if (!rows.length) return section("reasons").append(note("No misses and no bypasses are counted."));
  section("reasons").append(table([
    {name: "outcome", value: (row) => row.outcome},
    {name: "reason", class: "text", value: (row) => row.reason},
    {name: "count", number: true, value: (row) => row.count},
    {name: "", value: (row) => row.count, show: (row) => html("span", {class: "bar", style: `width:${160 * row.count / most}px`})},
    {name: "built in", number: true, value: (row) => row.seconds, show: (row) => seconds(row.seconds)},
  ], rows, 2));
}

function drawLevels() {
  const rows = [...data.levels].sort((a, b) => b.bytes - a.bytes), all = sum(rows.map((row) => row.bytes));
  const filled = rows.filter((row) => row.bytes);
  const color = (place) => `var(--${["hit", "c1", "c0", "c2", "c3", "c4", "c5"][place % 7]})`;
  if (all)
    section("levels").append(
      html("div", {class: "stack"}, ...filled.map((row, place) => html("div", {style: `width:${100 * row.bytes / all}%;background:${color(place)}`, title: `${row.level}: ${size(row.bytes)}`}))),
      legend(filled.map((row, place) => [`${row.level} ${percent(row.bytes, all)}`, color(place)])));
  section("levels").append(table([
    {name: "level", value: (row) => row.level},
    {name: "namespace", value: (row) => row.namespace || "cachegraph"},
    {name: "entries", number: true, value: (row) => row.entries, show: (row) => row.entries.toLocaleString("en")},
    {name: "size", number: true, value: (row) => row.bytes, show: (row) => size(row.bytes)},
    {name: "hits", number: true, value: (row) => row.hits || 0},
    {name: "misses", number: true, value: (row) => row.misses || 0},
    {name: "saved", number: true, value: (row) => row.seconds_saved || 0, show: (row) => seconds(row.seconds_saved || 0)},
    {name: "spent", number: true, value: (row) => row.seconds_spent || 0, show: (row) => seconds(row.seconds_spent || 0)},
  ], rows, 3));
}

function drawCostliest() {
  const rows = data.costliest, all = sum(data.levels.map((level) => level.entries));
  if (!rows.length) return section("costliest").append(note("There are no entries."));
  const most = Math.max(...rows.map((row) => row.build), 1e-9);
  const found = table([
    {name: "key", class: "code", value: (row) => row.key},
    {name: "level", value: (row) => row.level},
    {name: "build", number: true, value: (row) => row.build, show: (row) => html("span", {title: Object.entries(row.steps).map(([step, cost]) => `${step} ${seconds(cost)}`).join(", ")}, seconds(row.build))},
    {name: "", value: (row) => row.build, show: (row) => html("span", {class: "bar", style: `width:${90 * row.build / most}px`})},
    {name: "load", number: true, value: (row) => row.load, show: (row) => seconds(row.load)},
    {name: "size", number: true, value: (row) => row.bytes, show: (row) => size(row.bytes)},
    {name: "uses", number: true, value: (row) => row.uses},
    {name: "last used", class: "when", value: (row) => row.last_used, show: (row) => clock(row.last_used).slice(0, 16)},
    {name: "what", class: "text", value: (row) => row.what},
  ], rows, 2);
  const filter = html("input", {type: "search", placeholder: "filter", "aria-label": "filter the entries"});
  filter.addEventListener("input", () => found.filter(filter.value.toLowerCase()));
  const left = all > rows.length ? `The ${rows.length} of ${plural(all, "entry", "entries")} that took longest to build. ` : "";
  section("costliest").append(note(`${left}Click on a column to sort.`), filter, found);
}

function drawEviction() {
  const place = section("eviction"), limits = data.limits, again = data.reasons.filter((row) => row.reason.startsWith("evicted"));
  const count = sum(again.map((row) => row.count));
  place.append(note(count
    ? `${plural(count, "look-up")} found that the entry had been evicted; building again took ${seconds(sum(again.map((row) => row.seconds)))}.`
    : "No look-up is counted that missed because its entry had been evicted."));
  if (data.removals.length)
    place.append(table([
      {name: "removed because", class: "text", value: (row) => row.why},
      {name: "entries", number: true, value: (row) => row.count},
      {name: "last", value: (row) => row.last, show: (row) => clock(row.last)},
    ], data.removals));
  if (!limits.rows || !limits.rows.length) return place.append(note("No uses are recorded yet, so nothing can be said about other limits."));
  place.append(
    note(`What a size limit would have cost at most: of ${plural(limits.uses, "use")} of entries used before, besides ${plural(limits.first, "first use")} and ${plural(limits.gone, "use")} of entries that are gone.`),
    table([
      {name: "limit", number: true, value: (row) => row.max_size, show: (row) => size(row.max_size)},
      {name: "would have missed", number: true, value: (row) => row.misses},
      {name: "of them", number: true, value: (row) => row.misses, show: (row) => percent(row.misses, limits.uses)},
      {name: "to build again", number: true, value: (row) => row.seconds, show: (row) => seconds(row.seconds)},
    ], limits.rows));
}

// Decisions of one lane that overlap are put below each other; `rows` are the ends of each row.
function packed(decisions, least) {
  const rows = [];
  return [decisions.map((decision) => {
    const begin = decision.at - decision.seconds, end = Math.max(decision.at, begin + least);
    let row = rows.findIndex((taken) => taken <= begin);
    if (row < 0) row = rows.length < 12 ? rows.push(0) - 1 : 11;
    rows[row] = end;
    return [decision, row];
  }), rows.length];
}

const told = (decision) => `${decision.outcome} ${decision.level} ${decision.key}${decision.reason ? `: ${decision.reason}` : ""}\n${decision.what}\n` +
  `${seconds(decision.seconds)}${decision.outcome === "hit" ? `, saved ${seconds(decision.saved)}` : ""}, at ${clock(decision.at)}${decision.process ? `, process ${decision.process}` : ""}`;

function drawTimeline() {
  const place = section("timeline"), {decisions, source, left_out} = data.timeline;
  if (!decisions.length) return place.append(note("No run is recorded: processes that may write the cache note theirs when they end, and CACHEGRAPH_LOG=FILE writes each decision."));
  const begin = Math.min(...decisions.map((each) => each.at - each.seconds)), end = Math.max(...decisions.map((each) => each.at));
  const span = Math.max(end - begin, 1e-3);
  const origin = source === "index" ? "From the index: each build and miss, and the last use of each entry." : `From ${source}.`;
  const omitted = left_out ? ` ${plural(left_out, "shorter decision is", "shorter decisions are")} left out.` : "";
  place.append(note(`${origin}${omitted} Click on a bar for details.`), legend([["hit", "var(--hit)"], ["miss", "var(--miss)"], ["bypass", "var(--bypass)"]]));
  const chosen = html("p", {id: "chosen", class: "code note"}, " ");
  const names = [...new Set(decisions.map((each) => `${each.process ? `${each.process} ` : ""}${each.level}`))].sort();
  const lanes = names.map((name) => {
    const own = decisions.filter((each) => `${each.process ? `${each.process} ` : ""}${each.level}` === name);
    const [bars, rows] = packed(own, span / 250);
    return html("div", {class: "lane", style: `height:${18 + 15 * rows}px`}, html("span", {}, name), ...bars.map(([each, row]) => {
      const bar = html("div", {class: each.outcome, title: told(each), style: `left:${100 * (each.at - each.seconds - begin) / span * 0.995}%;width:${100 * each.seconds / span * 0.995}%;top:${16 + 15 * row}px`});
      bar.addEventListener("click", () => {
        document.querySelectorAll(".chosen").forEach((other) => other.classList.remove("chosen"));
        bar.classList.add("chosen");
        chosen.textContent = told(each);
      });
      return bar;
    }));
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => html("span", {style: `left:${100 * share}%`}, share ? `+${seconds(span * share)}` : clock(begin)));
  place.append(html("div", {class: "lanes"}, ...lanes), html("div", {class: "ticks"}, ...ticks), chosen,
    html("details", {}, html("summary", {}, `${plural(decisions.length, "decision")} as a table`), table([
      {name: "begin", number: true, value: (each) => each.at - each.seconds - begin, show: (each) => `+${seconds(each.at - each.seconds - begin)}`},
      {name: "took", number: true, value: (each) => each.seconds, show: (each) => seconds(each.seconds)},
      {name: "outcome", value: (each) => each.outcome},
      {name: "level", value: (each) => each.level},
      {name: "key", class: "code", value: (each) => each.key},
      {name: "reason", value: (each) => each.reason},
      {name: "what", class: "text", value: (each) => each.what},
    ], decisions)));
}

for (const draw of [drawHead, drawCards, drawDays, drawReasons, drawLevels, drawCostliest, drawEviction, drawTimeline]) draw();
for (const wide of document.querySelectorAll(".wide")) wide.scrollLeft = wide.scrollWidth; // the last days
document.documentElement.dataset.drawn = "yes";
