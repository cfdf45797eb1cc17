/**
 * A short text without Markdown syntax, on one line, for lists and excerpts. Text cut inside a construct may keep half of
 * it.
 */
export function withoutMarkup(text: string): string {
  return text
    .replace(/(?:^|(?<=\s))(?:`{3,}|~{3,})[\w-]*(?=\s|$)/g, " ")
    .replace(/^ {0,3}(?:#{1,6}|>+) /gm, "")
    .replace(/(?<=\s)#{2,6} /g, "")
    .replace(/!?\[([^[\]\n]{1,300})\]\([^()\s]{0,500}\)/g, "$1")
    .replace(/(\*\*|__)(?=\S)([^\n]{0,300}?\S)\1/g, "$2")
    .replace(/(?<![\w*])\*(?=\S)([^*\n]{0,300}?[^\s*])\*(?![\w*])/g, "$1")
    .replace(/`([^`\n]{1,300})`/g, "$1")
    .replace(/\s+/g, " ")
    .trim();
}
