import type { PatchSite, PatchSweepResult } from "../contracts/index.js";
import { visible } from "./text.js";

type Sweep = Pick<
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

/** What is patched of each block; block outputs alone where a result says nothing. */
export function patchPoints({ points }: Sweep): NonNullable<PatchSite["point"]>[] {
  return points ?? ["block_out"];
}

/** The sites of one of these points. */
export function sitesAt<S extends PatchSite>(sites: readonly S[], point: string): S[] {
  return sites.filter((site) => (site.point ?? "block_out") === point);
}

/** A site, and where its token stands in the first pair. */
export interface PlacedSite extends PatchSite {
  /** Column, in the order of the text. */
  column: number;
  /** Whether patching there could change anything: something reads the row, and the two runs differ in it. */
  inside: boolean;
}

/** Whether positions are spans that are marked in the texts. */
function marksSpans({ pairs }: Sweep): boolean {
  return pairs[0]?.clean.spans !== undefined;
}

/** What a position is: a token's index, or a span's number. */
export function positionName(result: Sweep, position: number): string {
  return `${marksSpans(result) ? "span" : "token"} ${position}`;
}

/** How far a site moves the answer. */
export function siteSize({ recovery, change }: Pick<PatchSite, "recovery" | "change">): number {
  return Math.abs(recovery ?? change);
}

/**
 * Of each head of each layer the site that moves most, layer by layer in the order of the heads; nothing where no head was
 * patched.
 */
export function bestOfHeads<S extends PatchSite>(sites: readonly S[]): S[] {
  const best = new Map<string, S>();
  for (const site of sitesAt(sites, "head_out")) {
    const head = `${site.layer}.${site.head}`;
    const known = best.get(head);
    if (known === undefined || siteSize(site) > siteSize(known)) best.set(head, site);
  }
  return [...best.values()];
}

/** The heads that move most, the first of them most; those that move nothing are not among them. */
export function strongestHeads<S extends PatchSite>(sites: readonly S[], most: number): S[] {
  return bestOfHeads(sites)
    .filter((site) => siteSize(site) > 0)
    .sort((a, b) => siteSize(b) - siteSize(a))
    .slice(0, most);
}

/** Whether maps show recoveries; changes where both runs have the same logit difference. */
export function showsShares(sites: readonly Pick<PatchSite, "recovery">[]): boolean {
  return sites.some(({ recovery }) => recovery !== null);
}

/** What a map shows of a site, or of its control. */
export function movedBy(
  { recovery, change }: Pick<PatchSite, "recovery" | "change">,
  shares: boolean,
): number {
  return shares ? (recovery ?? 0) : change;
}

/** How far the controls move the run: a row of its own put back, and at most a random change as long as the patch's. */
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
 * The two prompts' tokens of each column, in the order of the text; undefined where the pairs have different ones.
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

/** A column's name: the token, or both where the prompts differ. */
export function columnName({ position, clean, corrupted }: ReturnType<typeof patchTokens>[number]): string {
  if (clean === undefined && corrupted === undefined) return `#${position}`;
  if (clean === corrupted) return visible(clean as string);
  const name = (token: string | undefined) => (token === undefined ? "…" : visible(token));
  return `${name(clean)}/${name(corrupted)}`;
}

/** Where most of the way is gone, in a sentence. */
export function patchStory(result: Sweep): string {
  const all = placedSites(result).filter((site) => site.inside);
  // All of the way at the deepest block's last token is true of every sweep, and says nothing.
  const deepest = Math.max(...result.layers);
  const trivial = (site: PlacedSite) =>
    (site.point ?? "block_out") === "block_out" &&
    site.layer === deepest &&
    site.column === result.positions.length - 1 &&
    Math.abs((site.recovery ?? 0) - 1) < 1e-3;
  const inside = all.length > 1 ? all.filter((site) => !trivial(site)) : all;
  const tokens = patchTokens(result);
  const [first, ...others] = inside;
  if (first === undefined)
    return "No site could change anything: the two prompts give the model the same states there.";
  const size = (site: PlacedSite) => site.recovery ?? Math.abs(site.change);
  const best = others.reduce((most, site) => (size(site) > size(most) ? site : most), first);
  const { point = "block_out", head } = best;
  const what = head === undefined ? point : `head ${head}`;
  const where = `${what === "block_out" ? "" : `${what} of `}block ${best.layer} at “${columnName(tokens[best.column] as (typeof tokens)[number])}” (${positionName(result, best.position)})`;
  if (best.recovery === null) {
    return `Both runs have the same logit difference; it moves most, by ${best.change.toPrecision(3)}, with ${where}.`;
  }
  const [from, into] = result.direction === "denoise" ? ["clean", "corrupted"] : ["corrupted", "clean"];
  const { recovery_interval: interval } = best;
  const spread =
    interval === undefined
      ? ""
      : `, 95 % interval over ${result.pairs.length} pairs ${share(interval.low)} to ${share(interval.high)}`;
  return (
    `One state goes furthest: ${where}, put from the ${from} run into the ${into} run, moves the logit difference ` +
    `${share(best.recovery)} of the way${spread}.`
  );
}

function share(value: number): string {
  return `${Number((100 * value).toPrecision(3))} %`;
}
