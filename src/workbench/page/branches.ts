import type { ConversationSummary } from "../wire.js";

/**
 * The conversations that go on differently from one question: the answers that were begun anew, edited, or asked for in
 * other words there, the first one first.
 * @param all every conversation, in any order
 * @returns their ids, that of the one that holds `id`'s own version among them
 */
export function branchesAt(all: readonly ConversationSummary[], id: string, turn: number): string[] {
  const byId = new Map(all.map((one) => [one.id, one]));
  const root = rootOf(byId, id, turn);
  return all
    .filter(
      (one) =>
        one.turns > turn && ownerOf(byId, one.id, turn) === one.id && rootOf(byId, one.id, turn) === root,
    )
    .sort((a, b) => a.created - b.created)
    .map((one) => one.id);
}

/** The conversation whose version of a question another one shows: they are the same up to where it left. */
export function ownerOf(byId: ReadonlyMap<string, ConversationSummary>, id: string, turn: number): string {
  const from = byId.get(id)?.from;
  return from !== undefined && from.turn > turn && byId.has(from.conversation)
    ? ownerOf(byId, from.conversation, turn)
    : id;
}

/** The first of the conversations that differ in a question. */
function rootOf(byId: ReadonlyMap<string, ConversationSummary>, id: string, turn: number): string {
  const owner = ownerOf(byId, id, turn);
  const from = byId.get(owner)?.from;
  return from !== undefined && from.turn === turn && byId.has(from.conversation)
    ? rootOf(byId, from.conversation, turn)
    : owner;
}
