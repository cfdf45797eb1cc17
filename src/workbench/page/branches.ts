import type { ConversationSummary } from "../wire.js";

/**
 * The conversations with other versions of a question: resampled, edited or reworded there. The oldest comes first.
 * @param all every conversation, in any order
 * @returns their ids, including the one that owns the version shown in `id`
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

/** The conversation that owns the version of a question shown in another one, which branched off later. */
export function ownerOf(byId: ReadonlyMap<string, ConversationSummary>, id: string, turn: number): string {
  const from = byId.get(id)?.from;
  return from !== undefined && from.turn > turn && byId.has(from.conversation)
    ? ownerOf(byId, from.conversation, turn)
    : id;
}

/** The oldest of the conversations with versions of a question. */
function rootOf(byId: ReadonlyMap<string, ConversationSummary>, id: string, turn: number): string {
  const owner = ownerOf(byId, id, turn);
  const from = byId.get(owner)?.from;
  return from !== undefined && from.turn === turn && byId.has(from.conversation)
    ? rootOf(byId, from.conversation, turn)
    : owner;
}
