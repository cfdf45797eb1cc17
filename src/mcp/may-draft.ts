import { type ResearchClient, ResearchError, TimeoutError } from "../client/index.js";
import { mcpLimits } from "../contracts/mcp.js";

/**
 * Whether save_private_draft is offered: only where the environment allows it and the token may, too, since a host may
 * have set the variable for a token that only reads.
 * @param allowed the variable's value
 * @param tell hears why there is no such tool although the variable asks for it
 */
export async function mayDraft(
  client: Pick<ResearchClient, "maySaveDrafts">,
  allowed: string | undefined,
  tell: (why: string) => void,
): Promise<boolean> {
  if (allowed !== "1") return false;
  try {
    const may = await client.maySaveDrafts({ signal: AbortSignal.timeout(mcpLimits.scope_check_ms) });
    if (!may) tell("the token lacks the scope drafts:write.");
    return may;
  } catch (error) {
    const known = error instanceof ResearchError || error instanceof TimeoutError;
    tell(known ? error.message : "the service did not say what the token may do.");
    return false;
  }
}
