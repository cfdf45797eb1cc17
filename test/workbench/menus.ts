/** Opens menus, whose actions are hidden until then. */
import type { Locator, Page } from "playwright-core";

/** Opens the menu of that name, unless it is open. */
export async function openMenu(inside: Page | Locator, name: string | RegExp): Promise<void> {
  const named =
    typeof name === "string" ? (label: string) => label === name : (label: string) => name.test(label);
  for (const menu of await inside.locator(".menu:not([open]) > summary").all()) {
    if (!named((await menu.getAttribute("aria-label")) ?? "")) continue;
    await menu.click();
    return;
  }
}
