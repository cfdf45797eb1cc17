import { UserError } from "../contracts/user-error.js";
import type { Engine } from "../native/engine.js";
import { NativeError } from "../native/index.js";

/**
 * Sends one token through the model. With weights that are not finite a server would call itself healthy and answer
 * control characters.
 * @throws UserError with what is not finite
 */
export async function checkFinite(engine: Engine): Promise<void> {
  if (!engine.info.captures) return;
  const last = engine.info.nLayer - 1;
  try {
    await engine.capture({ prompt: "a", layers: [last], maxTokens: 16, nextTop: 1 });
  } catch (error) {
    if (!(error instanceof NativeError) || error.code !== "COMPUTE") return;
    await engine.close();
    throw new UserError(
      `This model cannot be served, its weights are damaged or too large: ${error.message}`,
    );
  }
}
