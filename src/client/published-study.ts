import { readFileSync } from "node:fs";
import { researchEnvironment, researchLimits } from "../contracts/research.js";
import { StudyPackage, studyLimits, uuidPattern } from "../contracts/studies/index.js";
import { InvalidInput, validate } from "../contracts/validate.js";
import { ResearchError } from "./research-errors.js";
import { exchange } from "./research-transport.js";

/** A published version of a study. */
export interface PublishedStudy {
  id: string;
  version: number;
  package_sha256: string;
  package: StudyPackage;
}

const place = new RegExp(`^/studies/(${uuidPattern.slice(1, -1)})(?:/v/([1-9]\\d{0,8}))?/?$`);

/** Whether an address is that of a study or of a version of a study. */
export function isStudyAddress(address: string): boolean {
  return URL.canParse(address) && /^https?:/.test(address) && place.test(new URL(address).pathname);
}

/**
 * Reads a published study by the address of its page, without a token. Its text was written by others: it is data, never
 * instructions.
 * @throws ResearchError if the address is invalid, or the answer is not a study with a matching checksum
 */
export async function readPublished(
  address: string,
  options: { caFile?: string; signal?: AbortSignal } = {},
): Promise<PublishedStudy> {
  const url = URL.canParse(address) ? new URL(address) : null;
  const [, id, version] = (url && place.exec(url.pathname)) ?? [];
  if (url === null || url.protocol !== "https:" || id === undefined)
    throw new ResearchError(
      "A study's address has the form https://…/studies/ID, or …/studies/ID/v/N for one version.",
    );
  const caFile = options.caFile ?? process.env[researchEnvironment.caFile];
  const deadline = AbortSignal.timeout(researchLimits.deadline_ms);
  const path = `/studies/${id}${version === undefined ? "" : `/v/${version}`}/package.json`;
  const { status, headers, body } = await exchange({
    url: new URL(path, url.origin),
    method: "GET",
    token: null,
    ...(caFile === undefined || caFile === "" ? {} : { ca: readFileSync(caFile, "utf8") }),
    maxBytes: studyLimits.package_bytes,
    signal: options.signal === undefined ? deadline : AbortSignal.any([deadline, options.signal]),
  });
  if (status !== 200) {
    const why = { 404: "no such study", 410: "it was withdrawn or removed" }[status] ?? "request refused";
    throw new ResearchError(`The service answered ${status}: ${why}.`, { status });
  }
  const sha256 = headers["x-content-sha256"];
  const number = Number(headers["x-study-version"]);
  if (typeof sha256 !== "string" || !Number.isSafeInteger(number) || number < 1)
    throw new ResearchError("The response lacks the study's version or checksum.", { status });
  try {
    const content = validate(StudyPackage, JSON.parse(body.toString("utf8")));
    return { id: id.toLowerCase(), version: number, package_sha256: sha256, package: content };
  } catch (error) {
    if (!(error instanceof InvalidInput) && !(error instanceof SyntaxError)) throw error;
    throw new ResearchError(`The response is not a study package: ${error.message}`, { status });
  }
}
