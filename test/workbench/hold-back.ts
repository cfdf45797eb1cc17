import type { Page, Request, Route } from "playwright-core";
import { until } from "../support/until.js";

/**
 * Holds back what the page asks for.
 * @param which of the requests to that path
 * @returns lets them go on, and resolves when all of them were answered, with the statuses
 */
export async function holdBack(
  page: Page,
  path: string,
  method = "POST",
  which: (request: Request) => boolean = () => true,
): Promise<() => Promise<number[]>> {
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
    if (request.method() !== method || !which(request)) return route.continue();
    const answer = handle(route);
    answers.push(answer);
    return answer;
  });
  return async () => {
    await until(() => answers.length > 0, `${method} ${path} is asked`);
    release();
    const statuses = await Promise.all(answers);
    await page.unroute(`**${path}`);
    return statuses;
  };
}
