/**
 * What `import "tapline"` gives: the clients of the local services. The native core is `tapline/native`, the
 * schemas of all bodies are `tapline/contracts`.
 */
export * from "./client/index.js";
