// Asks the component all that the Rust test asks, and prints one line of JSON for each answer.
//
//     node ask.mjs gate/gate.js QUESTIONS.json
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, file] = process.argv.slice(2);
const { backoff, message } = await import(pathToFileURL(module));
const questions = JSON.parse(readFileSync(file));

const kebab = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** A value with the names of WIT in place of those of JavaScript. */
function plain(value) {
  if (value === undefined) return null;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object") return value;
  if ("tag" in value) return { [value.tag]: plain(value.val) };
  const fields = Object.entries(value).map(([name, field]) => [
    kebab(name),
    name === "leniency" ? flags(field) : plain(field),
  ]);
  return Object.fromEntries(fields);
}

function flags(value) {
  return Object.keys(value).filter((name) => value[name]).map(kebab).sort();
}

function ask(call) {
  try {
    return { ok: plain(call()) };
  } catch (error) {
    if (error.payload === undefined) throw error;
    return { err: plain(error.payload) };
  }
}

function read(input, trusts, leniency) {
  const options = { leniency, allowSha1: leniency !== strict };
  return {
    decode: ask(() => message.decode(input, leniency)),
    describe: ask(() => message.describe(input, leniency)),
    check: ask(() => message.check(input, leniency)),
    verify: trusts.map((trust) => ask(() => message.verify(input, trust, options))),
  };
}

function takenApart(input, secret) {
  const split = ask(() => message.split(input, {}));
  if (split.err) return { split };
  const parts = message.split(input, {});
  const covered = message.protectedPart(input, {});
  const algorithm = parts.header.protectionAlg;
  return {
    split,
    encode: ask(() => message.encode(parts)),
    "protected-part": plain(covered),
    mac: algorithm ? ask(() => message.mac(algorithm, secret, covered)) : null,
  };
}

const strict = {};
const octets = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const policy = backoff.defaultPolicy();
const answers = [plain(policy)];
for (const attempts of questions.attempts) {
  const n = attempts === null ? undefined : BigInt(attempts);
  answers.push(ask(() => backoff.delay(policy, n)));
}
const failInfo = new Uint8Array([7, 2]);
answers.push(plain(message.errorContent("rejection", failInfo, ["no", "nein"])));
const secrets = questions.secrets.map((secret) => new TextEncoder().encode(secret));
const { certificates, at } = questions.anchors;
const trusts = [
  ...secrets.map((val) => ({ tag: "secret", val })),
  { tag: "kem", val: octets(questions.kem) },
  { tag: "anchors", val: { certificates: certificates.map(octets), untrusted: [], at: BigInt(at) } },
];
const everything = {
  nonMinimalLengths: true,
  fractionalSeconds: true,
  explicitRaVerified: true,
  emptyLists: true,
};
for (const name of questions.messages) {
  const input = new Uint8Array(readFileSync(name));
  answers.push({
    strict: read(input, trusts, strict),
    lenient: read(input, trusts, everything),
    parts: takenApart(input, secrets[0]),
  });
}
for (const answer of answers) console.log(JSON.stringify(answer));
