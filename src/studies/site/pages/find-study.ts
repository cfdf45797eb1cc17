import { findStudy, type Gone, goneOf, readVersion, type StudyRow } from "../../store/studies.js";
import { SiteError, type Visit } from "../visit.js";
import { goneSentence } from "./actions.js";

export interface ShownVersion {
  row: StudyRow;
  version: NonNullable<Awaited<ReturnType<typeof readVersion>>>;
  gone: Gone | null;
}

/** The version in the path, or in the legacy `?version=`; undefined for the current one. */
function wantedVersion(visit: Visit, segment: string | undefined): number | undefined {
  const text = segment ?? new URLSearchParams(visit.ctx.querystring).get("version");
  if (text === null) return undefined;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new SiteError(404, "Version not found.");
  return Number(text);
}

/** A study, one of its versions, and whether it was taken down. */
export async function findVersion(visit: Visit, id: string, segment?: string): Promise<ShownVersion> {
  const { store } = visit.service;
  const row = await findStudy(store, id);
  const version = row && (await readVersion(store, row.id, wantedVersion(visit, segment) ?? row.version));
  if (row === undefined || version === undefined) throw new SiteError(404, "Study not found.");
  return { row, version, gone: await goneOf(store, row, version.version) };
}

/** The same, but refuses versions that were taken down unless the visitor may still see them. */
export async function findShown(visit: Visit, id: string, segment?: string): Promise<ShownVersion> {
  const found = await findVersion(visit, id, segment);
  if (found.gone !== null && !maySeeGone(visit, found.row))
    throw new SiteError(410, goneSentence(found.gone));
  return found;
}

/** Authors and moderators can still read what was taken down. */
export function maySeeGone({ session }: Visit, row: StudyRow): boolean {
  return session !== null && (session.isModerator || session.account.id === row.account_id);
}
