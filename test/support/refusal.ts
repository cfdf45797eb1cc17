import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { NativeError } from "../../src/native/error.js";

type Kind = abstract new (...given: never[]) => Error;

/** Of what is refused by an error of one of these kinds, the sentence; any other error fails with its stack. */
export const refusalBy =
  (...kinds: Kind[]) =>
  async (work: () => unknown): Promise<string> => {
    try {
      await work();
    } catch (error) {
      assert.ok(
        kinds.some((kind) => error instanceof kind),
        String((error as Error).stack ?? error),
      );
      return (error as Error).message;
    }
    return assert.unreachable("it was not refused") as never;
  };

/** The sentence of a refusal, as a person reads it. */
export const refusal = refusalBy(UserError);

/** The addon's refusal with its code, as `CODE: sentence`; "taken" where nothing is refused. */
export async function nativeRefusal(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    assert.instance(error, NativeError, String((error as Error).stack ?? error));
    return `${(error as NativeError).code}: ${(error as Error).message}`;
  }
  return "taken";
}
