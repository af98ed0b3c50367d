// Asks the component all that the Rust test asks, and prints one line of JSON for each answer.
//
//     node ask.mjs gate/gate.js QUESTIONS.json
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, file] = process.argv.slice(2);
const { backoff, message } = await import(pathToFileURL(module));
const questions = JSON.parse(readFileSync(file));

/** A value with the names of WIT in place of those of JavaScript. */
function plain(value) {
  if (value === undefined) return null;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object") return value;
  if ("tag" in value) return { [value.tag]: plain(value.val) };
  const kebab = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, v]) => [kebab(name), plain(v)]));
}

function ask(call) {
  try {
    return { ok: plain(call()) };
  } catch (error) {
    if (error.payload === undefined) throw error;
    return { err: plain(error.payload) };
  }
}

const octets = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const policy = backoff.defaultPolicy();
const answers = [plain(policy)];
for (const attempts of questions.attempts) {
  const n = attempts === null ? undefined : BigInt(attempts);
  answers.push(ask(() => backoff.delay(policy, n)));
}
const { certificates, at } = questions.anchors;
const trusts = [
  { tag: "secret", val: new TextEncoder().encode(questions.secret) },
  { tag: "anchors", val: { certificates: certificates.map(octets), at: BigInt(at) } },
];
for (const file of questions.messages) {
  const input = new Uint8Array(readFileSync(file));
  answers.push({
    decode: ask(() => message.decode(input)),
    describe: ask(() => message.describe(input)),
    verify: trusts.map((trust) => ask(() => message.verify(input, trust))),
  });
}
for (const answer of answers) console.log(JSON.stringify(answer));
