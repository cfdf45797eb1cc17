import { UserError } from "../contracts/user-error.js";
import type { Engine } from "../native/engine.js";
import { NativeError } from "../native/index.js";

/**
 * Runs one token through the model. With weights that are not finite, a server would report itself healthy and
 * generate control characters.
 * @throws UserError with what is not finite
 */
export async function checkFinite(engine: Engine): Promise<void> {
  const fault = engine.info.captures ? await faultOfCapture(engine) : await faultOfAnswer(engine);
  if (fault === undefined) return;
  await engine.close();
  throw new UserError(`This model cannot be served, because its weights are damaged or too large: ${fault}`);
}

async function faultOfCapture(engine: Engine): Promise<string | undefined> {
  const last = engine.info.nLayer - 1;
  try {
    await engine.capture({ prompt: "a", layers: [last], maxTokens: 16, nextTop: 1 });
  } catch (error) {
    if (error instanceof NativeError && error.code === "COMPUTE") return error.message;
  }
  return undefined;
}

/** Without captures: checks the log-probability of one token, which is null in JSON if it is NaN. */
async function faultOfAnswer(engine: Engine): Promise<string | undefined> {
  const asked = { prompt: "a", max_tokens: 1, temperature: 0, logprobs: 1, cache_prompt: false };
  const { status, body } = await engine.request("completion", asked);
  if (status !== 200) return undefined;
  const { choices } = JSON.parse(body) as { choices: { logprobs?: Logprobs | null }[] };
  const told = choices[0]?.logprobs?.content?.[0];
  return told !== undefined && !Number.isFinite(told.logprob)
    ? "the probabilities of the next token are not finite."
    : undefined;
}

interface Logprobs {
  content?: { logprob: number | null }[];
}
