// Decodes a CMP message and checks its MAC, inside the sandbox, and prints both as JSON.
//
//     npm run transpile
//     node inspect-message.mjs MESSAGE.der SECRET
import { readFileSync } from "node:fs";
import { message as gate } from "./gate/gate.js";

/** What JSON has no word for: octets, and integers of 64 bits. */
function plain(_, value) {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  return typeof value === "bigint" ? Number(value) : value;
}

function main(file, secret) {
  // A Buffer would come to `plain` as something else: it has a JSON of its own.
  const message = new Uint8Array(readFileSync(file));
  // WIT's flags are an object of booleans: here none is true, so strict DER.
  const leniency = {};
  const shown = { message: gate.decode(message, leniency) };
  try {
    const trust = { tag: "secret", val: new TextEncoder().encode(secret) };
    shown.verified = gate.verify(message, trust, { leniency, allowSha1: false });
  } catch (error) {
    // The error side of a WIT result is in the payload; anything else is not ours.
    if (error.payload === undefined) throw error;
    shown.refused = error.payload;
  }
  console.log(JSON.stringify(shown, plain, 2));
}

const [file, secret] = process.argv.slice(2);
if (secret === undefined) {
  console.error("usage: node inspect-message.mjs MESSAGE.der SECRET");
  process.exit(1);
}
try {
  main(file, secret);
} catch (error) {
  const why = error.payload;
  console.error(
    why?.rule
      ? `${file}: no CMP message: at octet ${why.offset}, ${why.path || "PKIMessage"}: ${why.rule}`
      : `inspect-message: ${error.message}`,
  );
  process.exit(1);
}
