import { type ChildProcess, fork } from "node:child_process";
import { dirname, extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { samplePackage } from "../../../studies/support/packages.js";
import { module, moduleAt } from "../../../support/program.js";

const writer = fileURLToPath(new URL("../fixtures/writer.mjs", import.meta.url));
const store = moduleAt("studies/store/store");

/** Starts a process that writes to a database until it is killed; see writer.mjs for what it says. */
export function forkWriter(location: string, author: string, other: string): ChildProcess {
  const modules = [pathToFileURL(dirname(store)).href, extname(store)];
  const words = [...modules, JSON.stringify(samplePackage()), location, author, other];
  return fork(writer, words, { execArgv: [...module] });
}
