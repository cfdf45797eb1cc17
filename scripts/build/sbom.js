import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { BuildError } from "./errors.js";

/** The name of the list of components in a package: CycloneDX, as JSON. */
export const sbomName = "sbom.cdx.json";

/**
 * A CycloneDX document of one artifact. The same input gives the same bytes: its serial number is made of its content.
 * @param {{ name: string, version: string, license: string, description?: string }} about
 * @param {object[]} components in CycloneDX's form
 */
export function sbom({ name, version, license, description }, components) {
  const purl = `pkg:npm/${name}@${version}`;
  const root = {
    type: "application",
    "bom-ref": purl,
    name,
    version,
    description,
    purl,
    ...licenses(license),
  };
  const sorted = [...components].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  const hash = createHash("sha256")
    .update(JSON.stringify([root, sorted]))
    .digest("hex");
  const uuid = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-5${hash.slice(13, 16)}-a${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    serialNumber: `urn:uuid:${uuid}`,
    version: 1,
    metadata: { component: root },
    components: sorted,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** @param {object} component */
const key = (component) => /** @type {{ "bom-ref": string }} */ (component)["bom-ref"];

/** @param {string} license an SPDX id or expression */
function licenses(license) {
  const single = /^[\w.-]+$/.test(license) && !license.startsWith("LicenseRef-");
  return { licenses: [single ? { license: { id: license } } : { expression: license }] };
}

/**
 * @param {import("./components.js").Component[]} components
 * @returns {object[]}
 */
export function nativeEntries(components) {
  return components.map(({ name, version, license, purl }) => ({
    type: "library",
    "bom-ref": `${name}@${version}`,
    name,
    version,
    ...(purl !== undefined && { purl: /@[^/]*$/.test(purl) ? purl : `${purl}@${version}` }),
    ...licenses(license),
  }));
}

/**
 * Packages of npm, with their hashes and licences as npm lists them.
 * @param {string} root a folder with package-lock.json
 * @param {ReadonlySet<string>} wanted such as "koa@3.3.0"
 * @returns {object[]}
 */
export function npmEntries(root, wanted) {
  const args = ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"];
  const windows = process.platform === "win32";
  const text = execFileSync(windows ? "npm.cmd" : "npm", args, {
    cwd: root,
    encoding: "utf8",
    shell: windows,
    stdio: ["ignore", "pipe", "ignore"],
    maxBuffer: 2 ** 26,
  });
  /** @type {{ components: { "bom-ref": string, properties: object[] }[] }} */
  const { components } = JSON.parse(text);
  const entries = components.filter((each) => wanted.has(each["bom-ref"]));
  const listed = new Set(entries.map((each) => each["bom-ref"]));
  const missing = [...wanted].filter((each) => !listed.has(each));
  if (missing.length > 0) throw new BuildError(`npm's list of components lacks ${missing.join(", ")}.`);
  return entries.map(({ properties: _, ...entry }) => entry);
}
