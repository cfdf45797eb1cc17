import { findStudy, type Gone, goneOf, readVersion, type StudyRow } from "../../store/studies.js";
import { idOf, SiteError, type Visit } from "../visit.js";
import { goneSentence } from "./actions.js";

export interface ShownVersion {
  row: StudyRow;
  version: NonNullable<Awaited<ReturnType<typeof readVersion>>>;
  gone: Gone | null;
}

/** The version that an address names, in its path or as it used to: `?version=`; the current one unless told otherwise. */
function wantedVersion(visit: Visit, segment: string | undefined): number | undefined {
  const text = segment ?? new URLSearchParams(visit.ctx.querystring).get("version");
  if (text === null) return undefined;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new SiteError(404, "There is no such version.");
  return Number(text);
}

/** A study and one of its versions, and whether that is gone. */
export async function findVersion(
  visit: Visit,
  id: string | undefined,
  segment?: string,
): Promise<ShownVersion> {
  const { store } = visit.service;
  const row = await findStudy(store, idOf(id));
  const version = row && (await readVersion(store, row.id, wantedVersion(visit, segment) ?? row.version));
  if (row === undefined || version === undefined) throw new SiteError(404, "There is no such study.");
  return { row, version, gone: await goneOf(store, row, version.version) };
}

/** The same for what shows a version's content: what is gone is refused, except to who may see it. */
export async function findShown(
  visit: Visit,
  id: string | undefined,
  segment?: string,
): Promise<ShownVersion> {
  const found = await findVersion(visit, id, segment);
  if (found.gone !== null && !maySeeGone(visit, found.row))
    throw new SiteError(410, goneSentence(found.gone));
  return found;
}

/** What is gone stays readable to who published it and to moderators. */
export function maySeeGone({ session }: Visit, row: StudyRow): boolean {
  return session !== null && (session.isModerator || session.account.id === row.account_id);
}
