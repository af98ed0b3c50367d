// The page of `abide serve` in a real browser.
//
//     node check.mjs FOLDER TRIAL URL [TOKEN or ORDER]
//
// FOLDER gets the screenshots. Ends with a line that begins with "ok", or with an error.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [folder, trial, url, more] = process.argv.slice(2);
const PATIENCE = 20_000;
const WIDE = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

function fail(text) {
  throw new Error(text);
}

async function open(at, size, colorScheme = "light") {
  const context = await browser.newContext({ viewport: size, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => fail(`the page failed: ${error}`));
  page.on("console", (line) => {
    if (/Content Security Policy/.test(line.text())) fail(line.text());
  });
  await page.goto(at);
  return page;
}

/** No fault of accessibility that is serious, and nothing that does not fit. */
async function sound(page, name) {
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
  if (wide > 0) fail(`${name}: ${wide} pixels too wide`);
  // Through the debugger: the page's own policy allows no foreign script.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    expression: "axe.run().then((found) => JSON.stringify(found.violations))",
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) fail(`${name}: ${exceptionDetails.text}`);
  const violations = JSON.parse(result.value);
  const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact));
  if (serious.length > 0) {
    fail(`${name}: ${serious.map((one) =>
      `${one.id}: ${one.help} at ${one.nodes.map((node) => node.target).join(", ")}`).join("\n")}`);
  }
  console.log(`${name}: ${violations.length} lesser faults`);
}

const api = async (method, path, body) => {
  const headers = body ? { "Content-Type": "application/json" } : {};
  const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) fail(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};

const trials = {
  /** An order is made by the API, appears, waits with its countdown, and is issued. */
  async order() {
    const page = await open(`${url}/`, WIDE);
    await page.getByText("No orders").waitFor();
    const made = await api("POST", "/v1/orders", {
      subject: "/CN=seen-on-the-page", sans: ["page.example"], account: "prod",
    });
    const row = page.getByRole("row").filter({ hasText: "seen-on-the-page" });
    await row.waitFor();
    await row.filter({ hasText: "RUNNING" }).waitFor();
    const countdown = async () => (await row.locator("time").first().textContent()).trim();
    const first = await countdown();
    if (!/^in \d+ s$/.test(first)) fail(`no countdown, but ${first}`);
    await sound(page, "orders-waiting-1280");
    await page.waitForFunction(
      (before) => document.querySelector("tbody time")?.textContent.trim() !== before, first);
    await row.filter({ hasText: "ACTIVE" }).waitFor();
    await sound(page, "orders-1280");
    // By keyboard from the top: the first link skips to the content.
    await page.keyboard.press("Tab");
    const skip = await page.evaluate(() => document.activeElement.className);
    if (skip !== "skip") fail(`the first stop is ${skip}`);
    await row.getByRole("link").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    const picture = page.getByRole("img");
    await picture.waitFor();
    const told = await picture.getAttribute("aria-label");
    if (!/\d+ decisions/.test(told)) fail(`the timeline says ${told}`);
    await page.getByRole("cell", { name: /accepted for the issuer/ }).waitFor();
    await sound(page, "order-1280");

    for (const [name, hash] of [["orders", "#/"], ["order", `#/orders/${made.id}`],
      ["tasks", "#/tasks"], ["zombies", "#/zombies"], ["service", "#/service"]]) {
      const phone = await open(`${url}/${hash}`, PHONE, "dark");
      await phone.locator("#link.live").waitFor();
      await phone.getByRole("heading", { level: 1 }).waitFor();
      await sound(phone, `${name}-390-dark`);
      await phone.context().close();
    }
    const renew = page.getByRole("button", { name: "Renew now" });
    await renew.click();
    await page.getByRole("cell", { name: /renewed by/ }).waitFor();
  },

  /** A zombie is shown, planned and brought back. */
  async zombie() {
    const page = await open(`${url}/#/zombies`, WIDE);
    const card = page.getByRole("region", { name: `Zombie ${more}` });
    await card.waitFor();
    await page.locator(".tile.alarm").filter({ hasText: "zombies" }).waitFor();
    await card.getByRole("button", { name: "Dry run" }).click();
    await card.getByText(/The CA asked to be polled/).waitFor();
    await sound(page, "zombie-plan-1280");
    await card.getByRole("button", { name: "Apply" }).click();
    await page.getByText("Hydrated: it has its task again.").waitFor();
    await sound(page, "zombie-hydrated-1280");
  },

  /** Without a token nothing is told; with it, everything. */
  async token() {
    const page = await open(`${url}/`, WIDE);
    const field = page.getByLabel("This service wants a token");
    await field.waitFor();
    await sound(page, "token-1280");
    await field.fill("not-this-one");
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByText(/holds no token that is known/).waitFor();
    await field.fill(more);
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByText("No orders").waitFor();
    await field.waitFor({ state: "hidden" });
  },
};

let code = 0;
try {
  await trials[trial]();
  console.log(`ok ${trial}`);
} catch (error) {
  for (const context of browser.contexts()) {
    for (const page of context.pages()) {
      await page.screenshot({ path: join(folder, `${trial}-failed.png`) }).catch(() => {});
    }
  }
  console.error(error);
  code = 1;
}
await browser.close();
process.exit(code);
