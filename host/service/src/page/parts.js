// What the views are made of. Text only ever becomes text: nothing here reads markup.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== "" || key === "value" || key === "data-failure") made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Rows stay rows for screen readers also where they are laid out as cards. */
export function table(head, rows, caption) {
  const cells = (row) => row.map((cell, at) => element(
    "td",
    { role: "cell", "data-name": head[at] },
    ...[cell].flat(),
  ));
  return element(
    "table",
    { role: "table" },
    element("caption", {}, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" },
      head.map((text) => element("th", { role: "columnheader", scope: "col" }, text)))),
    element("tbody", { role: "rowgroup" },
      rows.map((row) => element("tr", { role: "row" }, cells(row)))),
  );
}

export function state(name) {
  return element("span", { class: `state state-${name}` }, name.replace("_", " "));
}

const UNITS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A length of time in its two largest units, as the commands write it. */
export function span(ms) {
  let seconds = Math.floor(ms / 1000);
  const parts = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ") || "0 s";
}

/** What lies ahead is rounded up: no wait ends before it says. */
export function distance(now, at) {
  if (at > now) return `in ${span(Math.ceil((at - now) / 1000) * 1000)}`;
  return now - at < 1000 ? "now" : `${span(now - at)} ago`;
}

/** A time in UTC, and how far it is from now. */
export function time(at, now) {
  const ms = Date.parse(at);
  return element(
    "time",
    { datetime: at },
    at.replace("T", " ").replace("Z", " UTC"),
    " ",
    element("small", {}, `(${distance(now, ms)})`),
  );
}
