/** How long a service at a usual port has to say what it is, in milliseconds. */
export const greetingMs = 2000;

/**
 * Whether one of ours is there: nothing, or another program that took the port, is none.
 * @param ask what only ours answers with true
 */
export async function answers(ask: () => Promise<boolean>): Promise<boolean> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Error && ["TaplineError", "TimeoutError"].includes(error.name)) return false;
    throw error;
  }
}
