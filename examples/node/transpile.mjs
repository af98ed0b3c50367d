// Makes a JavaScript module of the component: what `npx jco transpile FILE --name gate -o FOLDER`
// does, without the hundred packages of the rest of jco.
import { transpile, writeFiles } from "@bytecodealliance/jco-transpile";

const [component, folder] = process.argv.slice(2);
if (!folder) {
  console.error("usage: node transpile.mjs abide-gate.wasm FOLDER");
  process.exit(1);
}
const options = { name: "gate", outDir: folder, noComponentErrorWrapping: false };
const { files } = await transpile(component, options);
await writeFiles(files);
