import { type ResearchClient, ResearchError, TimeoutError } from "../client/index.js";
import { mcpLimits } from "../contracts/mcp.js";

/**
 * Whether save_private_draft is offered: only if both the environment and the token allow it, since a host may set the
 * variable for a read-only token.
 * @param allowed the variable's value
 * @param warn called with the reason if the variable allows it but the token does not
 */
export async function mayDraft(
  client: Pick<ResearchClient, "maySaveDrafts">,
  allowed: string | undefined,
  warn: (why: string) => void,
): Promise<boolean> {
  if (allowed !== "1") return false;
  try {
    const may = await client.maySaveDrafts({ signal: AbortSignal.timeout(mcpLimits.scope_check_ms) });
    if (!may) warn("the token lacks the scope drafts:write.");
    return may;
  } catch (error) {
    const known = error instanceof ResearchError || error instanceof TimeoutError;
    warn(known ? error.message : "the service did not return the token's permissions.");
    return false;
  }
}
