import type { Page, Request, Route } from "playwright-core";
import { until } from "../support/until.js";

/**
 * Holds back what the page asks for.
 * @param which of the requests to that path
 * @returns waits until at least `count` are held back (default: one), lets them go on, and resolves when they were
 * answered, with the statuses; requests from then on are not held back
 */
export async function holdBack(
  page: Page,
  path: string,
  method = "POST",
  which: (request: Request) => boolean = () => true,
): Promise<(count?: number) => Promise<number[]>> {
  let released = false;
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const answers: Promise<number>[] = [];
  const handle = async (route: Route) => {
    await held;
    const response = await route.fetch();
    await route.fulfill({ response });
    return response.status();
  };
  await page.route(`**${path}`, (route) => {
    const request = route.request();
    if (released || request.method() !== method || !which(request)) return route.continue();
    const answer = handle(route);
    answers.push(answer);
    return answer;
  });
  return async (count = 1) => {
    await until(() => answers.length >= count, `${method} ${path} is asked ${count} times`);
    released = true;
    release();
    const statuses = await Promise.all(answers);
    await page.unroute(`**${path}`);
    return statuses;
  };
}
