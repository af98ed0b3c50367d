// The page of `abide serve`. It shows what the API under /v1 tells, and asks again every second
// and a half; it has no knowledge of its own and keeps nothing but the token, for this tab.

import { timeline } from "/page/timeline.js";
import { distance, element, state, table, time } from "/page/parts.js";

const LOOK_MS = 1500;
const PAGE = 50;
const STATES = ["NOT_STARTED", "BUFFERED", "RUNNING", "ACTIVE", "ERROR", "CANCELED"];
const MINUTE = 60_000;
/** How far back the orders go that are shown without a filter; the first window with enough. */
const WINDOWS = [10 * MINUTE, 120 * MINUTE, 48 * 60 * MINUTE, 90 * 24 * 60 * MINUTE, Infinity];

const main = document.getElementById("main");
const overview = document.getElementById("overview");
const link = document.getElementById("link");
const signIn = document.getElementById("sign-in");

/** What the present view remembers between two looks. */
let view = { key: "", draw: async () => {} };

class Refused extends Error {
  constructor(status, problem) {
    super([problem.detail, problem.action].filter(Boolean).join("; ") || `HTTP ${status}`);
    this.status = status;
  }
}

async function call(method, path) {
  const headers = {};
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, { method, headers, cache: "no-store" });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body);
  return body;
}

const get = (path) => call("GET", path);

function say(text) {
  document.getElementById("said").textContent = text;
}

/** Replaces what is in `parent`, and leaves the focus where it was. */
function put(parent, ...children) {
  const focused = document.activeElement?.dataset?.focus;
  parent.replaceChildren(...children.flat().filter(Boolean));
  if (focused) parent.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}

function button(text, act, kind = "") {
  const made = element("button", { type: "button", class: kind, "data-focus": text }, text);
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await act();
    } catch (error) {
      say(error.message);
      failed(error);
    } finally {
      made.disabled = false;
      look();
    }
  });
  return made;
}

function failed(error) {
  const old = main.querySelector("[data-failure]");
  const text = element("p", { class: "notice", role: "alert", "data-failure": "" }, error.message);
  if (old) old.replaceWith(text);
  else main.prepend(text);
}

// ------------------------------------------------------------------------------ orders

/** The smallest id of an order that was accepted at a time: ids are UUIDs of version 7. */
function cursorAt(ms) {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

async function newest(query, now) {
  for (const window of WINDOWS) {
    const from = window === Infinity ? "" : `&cursor=${cursorAt(now - window)}`;
    const page = await get(`/v1/orders?limit=200${query}${from}`);
    if (page.items.length >= PAGE || window === Infinity) {
      let { items, next } = page;
      // More than one page is newer than the window: go to its end.
      for (let pages = 0; next && pages < 5; pages += 1) {
        const more = await get(`/v1/orders?limit=200${query}&cursor=${encodeURIComponent(next)}`);
        items = more.items.length ? items.concat(more.items).slice(-200) : items;
        next = more.next;
      }
      return { items: items.reverse(), more: Boolean(next) || window !== Infinity };
    }
  }
  return { items: [], more: false };
}

function orders() {
  const choose = element(
    "select",
    { id: "state" },
    element("option", { value: "" }, "all"),
    STATES.map((name) => element("option", { value: name }, name)),
  );
  const account = element("input", { id: "account", autocomplete: "off" });
  const list = element("div");
  const bar = element(
    "form",
    { class: "bar", "aria-label": "Filter" },
    element("label", { for: "state" }, "State", choose),
    element("label", { for: "account" }, "Account", account),
  );
  bar.addEventListener("submit", (event) => event.preventDefault());
  for (const field of [choose, account]) field.addEventListener("change", look);
  put(main, element("h1", {}, "Orders"), bar, list);
  return async (now) => {
    let query = choose.value ? `&state=${choose.value}` : "";
    if (account.value) query += `&account=${encodeURIComponent(account.value)}`;
    const { items, more } = await newest(query, now);
    const rows = items.map((order) => [
      element("a", { href: `#/orders/${order.id}`, "data-focus": order.id }, name(order)),
      state(order.state),
      order.account || "–",
      next(order, now),
      order.reason,
    ]);
    const head = ["Order", "State", "Account", "Next", "Why it stands there"];
    put(
      list,
      rows.length
        ? table(head, rows, "The newest orders first")
        : element("p", { class: "notice" }, "No orders. Make one: ", element("code", {},
            "abide orders create --subject /CN=device --sans device.example")),
      more && element("p", { class: "quiet" }, "Older ones: abide orders list"),
    );
  };
}

function name(order) {
  return order.request.subject || order.request.sans[0] || order.id;
}

function next(order, now) {
  const at = order.next_attempt_at || order.renewal_at;
  if (!at) return "–";
  const what = order.state === "ACTIVE" ? "renewal " : "";
  return element("time", { datetime: at, title: at }, `${what}${distance(now, Date.parse(at))}`);
}

// ------------------------------------------------------------------------------ one order

function order(id) {
  put(main, element("h1", {}, "Order"), element("p", {}, "…"));
  const path = `/v1/orders/${encodeURIComponent(id)}`;
  return async (now) => {
    const [found, why] = await Promise.all([get(path), get(`${path}/explain?hours=48`)]);
    const facts = [
      ["State", [state(found.state), ` ${found.reason}`]],
      ["Id", found.id],
      ["Account", found.account || "–"],
      ["Application", found.application || "–"],
      ["Issuer", found.issuer],
      ["Asked for by", `${found.principal} (${found.origin})`],
      ["Next", found.next_attempt_at ? [time(found.next_attempt_at, now)] : "nothing is to come"],
      ["Failed issuances", String(found.issuance_attempts ?? 0)],
      ["Valid until", found.not_after ? [time(found.not_after, now)] : "no certificate yet"],
      ["Renewal", found.renewal_at ? [time(found.renewal_at, now)] : "–"],
    ];
    const failure = found.failure && element(
      "div",
      { class: "notice" },
      element("h2", {}, "The last failure"),
      element("p", {}, found.failure.reason),
      element("p", { class: "quiet" },
        `It is up to: ${found.failure.fault}. What to do: ${found.failure.advice}`),
    );
    const history = found.history.map((line) => [time(line.at, now), line.text]);
    put(
      main,
      element("h1", {}, name(found)),
      element("div", { class: "card" }, element("dl", {}, facts.map(([key, value]) => [
        element("dt", {}, key),
        element("dd", {}, value),
      ]))),
      element("p", { class: "bar" },
        button("Renew now", async () => {
          await call("POST", `${path}/renew`);
          say("The order is renewed");
        }, "main"),
        found.state !== "CANCELED" && button("Cancel", async () => {
          if (!confirm("End this order? Its certificate stays.")) return;
          await call("POST", `${path}/cancel`);
          say("The order is canceled");
        }, "danger")),
      failure,
      element("h2", {}, "Timeline"),
      element("div", { class: "card" }, timeline(found, why, now)),
      element("h2", {}, "Why the next attempt is when it is"),
      why.steps.length
        ? element("ol", {}, why.steps.map((step) => element("li", {}, step.text)))
        : element("p", { class: "quiet" }, "No rule had a say."),
      element("h2", {}, "What was decided"),
      table(["When", "What"], history, "Oldest first"),
    );
  };
}

// ------------------------------------------------------------------------------ tasks

function tasks() {
  put(main, element("h1", {}, "Tasks"));
  return async (now) => {
    const [due, dead] = await Promise.all([
      get("/v1/tasks?limit=200"),
      get("/v1/dead-letters?limit=200"),
    ]);
    due.items.sort((one, other) => Date.parse(one.due) - Date.parse(other.due));
    const rows = due.items.map((task) => [
      element("a", { href: `#/orders/${task.order}`, "data-focus": task.order }, task.order),
      task.kind,
      task.due ? time(task.due, now) : "–",
      task.holder || "–",
      task.reason || "–",
    ]);
    const letters = dead.items.map((task) => [
      element("a", { href: `#/orders/${task.order}` }, task.order),
      task.kind,
      task.reason,
      button(`Replay ${task.order}`, async () => {
        await call("POST", `/v1/dead-letters/${encodeURIComponent(task.order)}/replay`);
        say("The dead letter is a task again");
      }),
    ]);
    put(
      main,
      element("h1", {}, "Tasks"),
      rows.length
        ? table(["Order", "What", "Due", "Held by", "Why it failed last"], rows, "What is to be done")
        : element("p", { class: "notice" }, "Nothing is to be done."),
      element("h2", {}, "Dead letters"),
      letters.length
        ? table(["Order", "What", "Why", "Do"], letters, "Tasks that failed too often")
        : element("p", { class: "quiet" }, "None: no task has failed too often."),
    );
  };
}

// ------------------------------------------------------------------------------ zombies

function zombies() {
  const plans = new Map();
  put(main, element("h1", {}, "Zombies"));
  return async (now) => {
    const found = [];
    let cursor = "";
    for (let pages = 0; pages < 20; pages += 1) {
      const page = await get(`/v1/zombies?limit=200${cursor}`);
      found.push(...page.items);
      if (!page.next) break;
      cursor = `&cursor=${encodeURIComponent(page.next)}`;
    }
    const cards = found.map((zombie) => card(zombie, plans, now));
    for (const [id, plan] of plans) {
      if (!found.some((zombie) => zombie.order === id)) cards.push(outcome(id, plan));
    }
    put(
      main,
      element("h1", {}, "Zombies"),
      element("p", { class: "quiet" },
        "Orders that need a task and have had none for longer than the cutoff."),
      cards.length ? cards : element("p", { class: "notice" }, "None: every order is looked after."),
    );
  };
}

function card(zombie, plans, now) {
  const id = zombie.order;
  const hydrate = async (dryRun) => {
    const query = `executionId=${encodeURIComponent(id)}&dryRun=${dryRun}`;
    const plan = await call("POST", `/v1/admin/queue/hydrate?${query}`);
    plans.set(id, plan.executions[id]);
    say(dryRun ? "This is what would be done" : "The order is hydrated");
  };
  const plan = plans.get(id);
  return element(
    "section",
    { class: "card", "aria-label": `Zombie ${id}` },
    element("h2", {}, element("a", { href: `#/orders/${id}` }, id)),
    element("p", {}, state(zombie.state), ` ${zombie.reason}; last progress `,
      time(zombie.last_progress, now)),
    element("p", { class: "bar" },
      button(`Dry run ${id}`, () => hydrate(true)),
      plan?.canApply && button(`Apply ${id}`, () => hydrate(false), "main")),
    plan && steps(plan),
  );
}

function outcome(id, plan) {
  return element(
    "section",
    { class: "card", "aria-label": `Hydrated ${id}` },
    element("h2", {}, element("a", { href: `#/orders/${id}` }, id)),
    element("p", {}, plan.applied ? "Hydrated: it has its task again." : "No zombie any more."),
    steps(plan),
  );
}

function steps(plan) {
  if (plan.refused) return element("p", { class: "quiet" }, plan.refused);
  return element("ul", {}, plan.actions.map((action) => element(
    "li",
    {},
    action.description,
    action.message && ` (${action.message.kind} at ${action.message.retryAt})`,
    Object.entries(action.context).map(([key, value]) => ` ${key} ${value}`),
  )));
}

// ------------------------------------------------------------------------------ service

function service() {
  put(main, element("h1", {}, "Service"));
  return async (now) => {
    const told = await get("/v1/overview");
    const rows = told.endpoints.map((one) => [
      one.server,
      one.not_before ? ["spared until ", time(one.not_before, now)] : "takes requests",
      `${one.retries_left} of ${one.retries}`,
      String(one.throttled),
      time(one.updated, now),
    ]);
    const shards = (told.workers ?? []).map((one) => [
      one.name,
      time(one.seen, now),
      one.owns,
    ]);
    put(
      main,
      element("h1", {}, "Service"),
      element("div", { class: "card" }, element("dl", {}, [
        ["Worker", told.worker],
        ["Version", told.version],
        ["Clock", told.now],
      ].map(([key, value]) => [element("dt", {}, key), element("dd", {}, value)]))),
      element("h2", {}, "Endpoints"),
      rows.length
        ? table(["CMP endpoint", "How it is", "Retries left", "Throttled in a row", "Changed"],
            rows, "What all workers share about each CA")
        : element("p", { class: "quiet" }, "No endpoint has given trouble."),
      shards.length ? [
        element("h2", {}, "Workers"),
        table(["Worker", "Last heartbeat", "Accounts"], shards, "Who serves which accounts"),
      ] : null,
    );
  };
}

// ------------------------------------------------------------------------------ the frame

async function tiles(now) {
  const told = await get("/v1/overview");
  const tile = (label, value, alarm = false) => element(
    "div",
    { class: alarm ? "tile alarm" : "tile" },
    element("b", {}, String(value)),
    element("span", {}, label),
  );

  put(
    overview,
    told.orders && STATES.map((name) => tile(name.toLowerCase().replace("_", " "),
      told.orders[name] ?? 0)),
    tile("tasks", told.tasks.total),
    tile("due now", told.tasks.due),
    tile("dead letters", told.dead_letters, told.dead_letters > 0),
    tile("zombies", told.zombies, told.zombies > 0),
  );
}

const VIEWS = [
  [/^#\/orders\/([^/]+)$/, (id) => order(decodeURIComponent(id))],
  [/^#\/tasks$/, tasks],
  [/^#\/zombies$/, zombies],
  [/^#\/service$/, service],
  [/.*/, orders],
];

function route() {
  const hash = location.hash || "#/";
  if (view.key === hash) return;
  for (const anchor of document.querySelectorAll("nav a")) {
    const here = anchor.getAttribute("href");
    const is = here === hash || (here === "#/" && hash.startsWith("#/orders/"));
    if (is) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  for (const [pattern, make] of VIEWS) {
    const match = pattern.exec(hash);
    if (!match) continue;
    view = { key: hash, draw: make(...match.slice(1)) };
    return;
  }
}

let looking = Promise.resolve();

function look() {
  looking = looking.then(once, once);
  return looking;
}

async function once() {
  route();
  const now = Date.now();
  const drawn = view;
  try {
    await tiles(now);
    await drawn.draw(now);
    main.querySelector("[data-failure]")?.remove();
    link.className = "link live";
    document.getElementById("link-text").textContent = "live";
    signIn.hidden = true;
  } catch (error) {
    const isRefused = error instanceof Refused;
    link.className = isRefused ? "link live" : "link lost";
    document.getElementById("link-text").textContent = isRefused ? "live" : "no connection";
    if (error.status === 401) {
      signIn.hidden = false;
      document.getElementById("sign-in-why").textContent = error.message;
    } else if (isRefused) {
      failed(error);
    }
  }
}

signIn.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = document.getElementById("token");
  sessionStorage.setItem("token", field.value);
  field.value = "";
  look();
});

window.addEventListener("hashchange", () => {
  look();
  main.focus();
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) look();
});

async function live() {
  if (!document.hidden) await look();
  setTimeout(live, LOOK_MS);
}

live();
