/** Text of the site's markup. */

const characters: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', "#39": "'", amp: "&" };

/** What a browser makes of escaped text. */
export function unescaped(markup: string): string {
  return markup.replace(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => characters[name] as string);
}

/** The same, of markup without its tags. */
export function textOf(markup: string): string {
  return unescaped(markup.replace(/<[^>]*>/g, ""));
}
