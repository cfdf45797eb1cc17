import type { Entry } from "../../contracts/studies/index.js";
import type { Html } from "./html.js";

/** Most headings and entries in a table of contents. */
const mostNamed = 60;
const longestName = 120;

interface Named {
  id: string;
  name: string;
}

/** Collects headings by section, entries and figures while a page is rendered. */
export class Outline {
  #section = "";
  #figures = 0;
  #named = 0;
  readonly #headings = new Map<string, Named[]>();
  readonly #first = new Map<string, { id: string; title: string; drawings: readonly Html[] }>();

  /** Starts a section. */
  begin(section: string): void {
    this.#section = section;
  }

  /** @returns the heading's id on the page; null if there are too many */
  heading(text: string): string | null {
    if (this.#section === "entries") return null;
    return this.#add(this.#section, text, (place) => `${this.#section}-${place}`);
  }

  entry({ id, kind, title }: Entry): void {
    this.#section = "entries";
    this.#add("entries", title === "" ? kind : title, () => `entry-${id}`);
  }

  /** @returns the figure's id on the page */
  figure(title: string, drawings: readonly Html[]): string {
    this.#figures += 1;
    const id = `figure-${this.#figures}`;
    if (drawings.length > 0 && !this.#first.has(this.#section))
      this.#first.set(this.#section, { id, title, drawings });
    return id;
  }

  /** Headings or entries of a section. */
  within(section: string): readonly Named[] {
    return this.#headings.get(section) ?? [];
  }

  /** The first figure of the finding, else of the entries. */
  get headline() {
    return this.#first.get("finding") ?? this.#first.get("entries") ?? null;
  }

  #add(section: string, text: string, idOf: (place: number) => string): string | null {
    if (this.#named === mostNamed) return null;
    this.#named += 1;
    const list = this.#headings.get(section) ?? [];
    const characters = [...text.trim()];
    const name =
      characters.length > longestName ? `${characters.slice(0, longestName).join("")}…` : characters.join("");
    const id = idOf(list.length + 1);
    list.push({ id, name });
    this.#headings.set(section, list);
    return id;
  }
}
