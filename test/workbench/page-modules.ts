/**
 * The page's modules that need a browser, for tests that give them what they need of one. They are not imported by name:
 * that would bring a browser's types into every test.
 */

/** A module of the page. @param name without its folder and ending */
export function pageModule<T>(name: string): Promise<T> {
  return import(new URL(`../../src/workbench/page/${name}.js`, import.meta.url).href) as Promise<T>;
}
