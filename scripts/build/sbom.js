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
 * Packages of npm, with the hashes and licences that package-lock.json has. (`npm sbom --omit dev` leaves out those that
 * development needs, too.)
 * @param {Record<string, { version?: string, integrity?: string, license?: string }>} locked package-lock.json's `packages`
 * @param {string[]} paths such as "node_modules/koa"
 * @returns {object[]}
 */
export function npmEntries(locked, paths) {
  const entries = new Map();
  for (const path of paths) {
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const { version, integrity, license } = locked[path] ?? {};
    const [algorithm, digest = ""] = integrity?.split("-") ?? [];
    if (version === undefined || algorithm !== "sha512" || license === undefined) {
      throw new BuildError(`package-lock.json has no version, sha512 or license of ${path}.`);
    }
    const ref = `${name}@${version}`;
    entries.set(ref, {
      type: "library",
      "bom-ref": ref,
      name,
      version,
      purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
      hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }],
      ...licenses(license),
    });
  }
  return [...entries.values()];
}
