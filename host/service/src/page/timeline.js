// One order on an axis of time: what was decided, the waits in between, and the attempts that
// would follow while each of them fails.

import { distance, element, shape, span } from "/page/parts.js";

const WIDTH = 900;
const HEIGHT = 130;
const LEFT = 10;
const RIGHT = 890;
const LINE = 60;

const STEPS = [1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86_400, 7 * 86_400, 30 * 86_400]
  .map((seconds) => seconds * 1000);

export function timeline(order, explanation, now) {
  const events = order.history.map((line) => ({ at: Date.parse(line.at), text: line.text }));
  const ahead = explanation.forecast.slice(0, 12).map((one) => ({
    from: Date.parse(one.earliest),
    to: Date.parse(one.latest),
  }));
  const next = Date.parse(order.next_attempt_at ?? order.renewal_at ?? "");
  const isAhead = !Number.isNaN(next) && next > now;
  const first = Math.min(now - 1000, ...events.map((event) => event.at));
  const shown = order.state === "ACTIVE" ? [] : ahead.slice(0, 6);
  const last = Math.max(now + 1000, isAhead ? next : 0, ...shown.map((one) => one.to));
  // The past and what lies ahead have a scale each: a day of attempts and the two months until
  // the renewal are both seen.
  const middle = isAhead || shown.length > 0 ? LEFT + (RIGHT - LEFT) * 0.55 : RIGHT - 40;
  const x = (at) => (at <= now
    ? LEFT + ((at - first) / (now - first)) * (middle - LEFT)
    : middle + ((at - now) / (last - now)) * (RIGHT - middle));

  const parts = [];
  const ticks = (from, to, most) => {
    const step = STEPS.find((size) => (to - from) / size <= most) ?? (to - from) / most;
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const label = new Date(at).toISOString();
      const text = step >= 86_400_000 ? label.slice(5, 10)
        : label.slice(11, step >= 60_000 ? 16 : 19);
      parts.push(shape("line", { class: "rule", x1: x(at), x2: x(at), y1: 30, y2: 95 }));
      parts.push(shape("text", { x: Math.min(x(at) + 3, RIGHT - 50), y: 112 }, text));
    }
  };
  ticks(first, now, 4);
  if (middle < RIGHT - 40) ticks(now, last, 4);
  for (let i = 0; i < events.length; i += 1) {
    const until = events[i + 1]?.at ?? (Number.isNaN(next) ? now : Math.max(next, now));
    const wide = x(until) - x(events[i].at);
    const wait = shape("rect", {
      class: "wait", x: x(events[i].at), y: LINE - 5, width: Math.max(wide, 0), height: 10,
    });
    wait.append(shape("title", {}, `waits ${span(until - events[i].at)}`));
    parts.push(wait);
  }
  for (const one of shown) {
    const bar = shape("rect", {
      class: "next", x: x(one.from), y: LINE - 14, width: Math.max(x(one.to) - x(one.from), 3), height: 28,
    });
    bar.append(shape("title", {}, `another attempt ${distance(now, one.from)}, if it fails until then`));
    parts.push(bar);
  }
  for (const event of events) {
    const kind = /^failed|refused|no way on/.test(event.text) ? "fault"
      : event.text.startsWith("issued") ? "good" : "event";
    const dot = shape("circle", { class: kind, cx: x(event.at), cy: LINE, r: 6 });
    dot.append(shape("title", {}, `${distance(now, event.at)}: ${event.text}`));
    parts.push(dot);
  }
  parts.push(shape("line", { class: "now", x1: x(now), x2: x(now), y1: 22, y2: 98 }));
  parts.push(shape("text", { x: Math.min(x(now) + 4, RIGHT - 26), y: 24 }, "now"));

  const told = `${events.length} decisions, the last ${distance(now, events.at(-1)?.at ?? now)}`
    + (Number.isNaN(next) ? "; nothing is to come" : `; the next step ${distance(now, next)}`);
  return [
    shape("svg", {
      class: "axis", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": told,
    }, ...parts),
    element("p", { class: "quiet" }, told),
  ];
}
