/**
 * A short text without the marks of Markdown, on one line, for where there is room for words alone: lists, excerpts. What
 * begins or ends inside a mark may keep half of it.
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
