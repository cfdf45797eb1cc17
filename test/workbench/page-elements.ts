/** As much of a document as the page's modules make of it: elements that hold others, and can be read as a text. */

export class PageElement {
  readonly name: string;
  readonly parts: (PageElement | string)[] = [];
  readonly attributes = new Map<string, string>();
  readonly styles = new Map<string, string>();
  className = "";
  tabIndex = -1;
  title = "";

  constructor(name: string) {
    this.name = name;
  }

  append(...parts: (PageElement | string)[]): void {
    this.parts.push(...parts);
  }

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }

  removeAttribute(name: string): void {
    if (name === "title") this.title = "";
    this.attributes.delete(name);
  }

  set textContent(text: string) {
    this.parts.splice(0, this.parts.length, text);
  }

  readonly style = {
    setProperty: (name: string, value: string) => void this.styles.set(name, value),
    removeProperty: (name: string) => void this.styles.delete(name),
  };

  readonly classList = {
    toggle: (name: string, on: boolean) => {
      this.className = on ? name : "";
    },
  };

  /** As markup, with a class after a dot. */
  get told(): string {
    const attributes = [...this.attributes].map(([name, value]) => ` ${name}=${value}`).join("");
    const opening = `${this.name}${this.className === "" ? "" : `.${this.className.replaceAll(" ", ".")}`}`;
    const stop = this.tabIndex === 0 ? " tab" : "";
    const inner = this.parts.map((part) => (typeof part === "string" ? part : part.told)).join("");
    return `<${opening}${attributes}${stop}>${inner}</${this.name}>`;
  }
}

/** A document instead of the browser's. @returns restores the former one */
export function openDocument(): () => void {
  const before = Object.getOwnPropertyDescriptor(globalThis, "document");
  const value = {
    createElement: (name: string) => new PageElement(name),
    createTextNode: (text: string) => `{${text}}`,
  };
  Object.defineProperty(globalThis, "document", { configurable: true, value });
  return () => {
    if (before === undefined) Reflect.deleteProperty(globalThis, "document");
    else Object.defineProperty(globalThis, "document", before);
  };
}
