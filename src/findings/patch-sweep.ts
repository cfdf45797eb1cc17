import type { PatchSite, PatchSweepResult } from "../contracts/index.js";
import { visible } from "../text/visible.js";

/** What findings and maps of a sweep need. */
export type Sweep = Pick<
  PatchSweepResult,
  | "direction"
  | "layers"
  | "points"
  | "heads"
  | "positions"
  | "pairs"
  | "sites"
  | "clean"
  | "corrupted"
  | "restored"
>;

/** The patched points; only block outputs if a result does not list them. */
export function patchPoints({ points }: Sweep): NonNullable<PatchSite["point"]>[] {
  return points ?? ["block_out"];
}

/** The sites of one of these points. */
export function sitesAt<S extends PatchSite>(sites: readonly S[], point: string): S[] {
  return sites.filter((site) => (site.point ?? "block_out") === point);
}

/** A site, and the place of its token in the first pair. */
export interface PlacedSite extends PatchSite {
  /** Column, in the order of the text. */
  column: number;
  /** Whether patching there can change anything: the activation is read later and differs between the two runs. */
  inside: boolean;
}

/** Whether positions are marked spans. */
function marksSpans({ pairs }: Sweep): boolean {
  return pairs[0]?.clean.spans !== undefined;
}

/** The name of a position: a token's index or a span's number. */
export function positionName(result: Sweep, position: number): string {
  return `${marksSpans(result) ? "span" : "token"} ${position}`;
}

/** How far a site moves the answer. */
export function siteSize({ recovery, change }: Pick<PatchSite, "recovery" | "change">): number {
  return Math.abs(recovery ?? change);
}

/** The strongest site of each head, layer by layer; empty if no heads were patched. */
export function bestOfHeads<S extends PatchSite>(sites: readonly S[]): S[] {
  const best = new Map<string, S>();
  for (const site of sitesAt(sites, "head_out")) {
    const head = `${site.layer}.${site.head}`;
    const known = best.get(head);
    if (known === undefined || siteSize(site) > siteSize(known)) best.set(head, site);
  }
  return [...best.values()];
}

/** The heads with the largest effects, in descending order, without those that have none. */
export function strongestHeads<S extends PatchSite>(sites: readonly S[], most: number): S[] {
  return bestOfHeads(sites)
    .filter((site) => siteSize(site) > 0)
    .sort((a, b) => siteSize(b) - siteSize(a))
    .slice(0, most);
}

/** Whether maps show recoveries, or changes if both runs have the same logit difference. */
export function showsShares(sites: readonly Pick<PatchSite, "recovery">[]): boolean {
  return sites.some(({ recovery }) => recovery !== null);
}

/** The value of a site, or of its control, in a map. */
export function movedBy(
  { recovery, change }: Pick<PatchSite, "recovery" | "change">,
  shares: boolean,
): number {
  return shares ? (recovery ?? 0) : change;
}

/** The effects of the controls: restoring a run's own activation, and the largest of the norm-matched random changes. */
export function patchControls(result: Sweep): { restored: number; random: number | undefined } {
  const base = result.direction === "denoise" ? result.corrupted : result.clean;
  const random = placedSites(result).flatMap(({ control, inside }) =>
    control === undefined || !inside ? [] : Math.abs(control.change),
  );
  return {
    restored: result.restored - base,
    random: random.length === 0 ? undefined : Math.max(...random),
  };
}

/** Columns in the order of the text, as indices into `positions`. */
function columns(result: Sweep): number[] {
  const { positions, pairs } = result;
  const length = marksSpans(result) ? 0 : (pairs[0]?.clean.tokens.length ?? 0);
  const place = (index: number) => {
    const position = positions[index] as number;
    return position < 0 ? length + position : position;
  };
  return positions.map((_, index) => index).sort((a, b) => place(a) - place(b));
}

/** The sites with their columns. */
export function placedSites(result: Sweep): PlacedSite[] {
  const order = columns(result);
  const columnOf = new Map(order.map((index, column) => [result.positions[index] as number, column]));
  return result.sites.map((site) => ({
    ...site,
    column: columnOf.get(site.position) as number,
    inside: site.change_length !== null && site.change_length > 0,
  }));
}

/**
 * The two prompts' tokens per column, in the order of the text; undefined if they differ between pairs.
 */
export function patchTokens(result: Sweep): { position: number; clean?: string; corrupted?: string }[] {
  return columns(result).map((index) => {
    const position = result.positions[index] as number;
    const shared = (side: "clean" | "corrupted") => {
      const tokens = result.pairs.map(
        ({ [side]: { spans, tokens } }) => (spans?.[position]?.text ?? tokens.at(position)) as string,
      );
      return tokens.every((token) => token === tokens[0]) ? tokens[0] : undefined;
    };
    const [clean, corrupted] = [shared("clean"), shared("corrupted")];
    return {
      position,
      ...(clean === undefined ? {} : { clean }),
      ...(corrupted === undefined ? {} : { corrupted }),
    };
  });
}

/** A column's name: the token, or both tokens if the prompts differ. */
export function columnName({ position, clean, corrupted }: ReturnType<typeof patchTokens>[number]): string {
  if (clean === undefined && corrupted === undefined) return `#${position}`;
  if (clean === corrupted) return visible(clean as string);
  const name = (token: string | undefined) => (token === undefined ? "…" : visible(token));
  return `${name(clean)}/${name(corrupted)}`;
}
