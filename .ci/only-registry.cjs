/**
 * Preloaded into every Node process of an install (NODE_OPTIONS=--require): names other than the registry's cannot be
 * resolved, as on a machine that reaches nothing else, and whoever asks is written down in $ONLY_REGISTRY_LOG.
 */
const dns = require("node:dns");
const { isIP } = require("node:net");
const { appendFileSync } = require("node:fs");

const allowed = new Set(["localhost", process.env.ONLY_REGISTRY_HOST]);
const lookup = dns.lookup;
dns.lookup = (name, ...rest) => {
  if (allowed.has(name) || isIP(name) !== 0) return lookup(name, ...rest);
  const asked = `${name} by ${process.env.npm_package_name ?? process.argv.slice(1).join(" ")}\n`;
  appendFileSync(process.env.ONLY_REGISTRY_LOG, asked);
  const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), {
    code: "ENOTFOUND",
    hostname: name,
  });
  process.nextTick(rest.at(-1), error);
};
