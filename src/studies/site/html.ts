import { htmlTag } from "../../markup/html.js";
import { displayable } from "../text/display.js";

export { Html, type Value } from "../../markup/html.js";

/** HTML templates of the site: text is escaped, and characters that cannot be stored are replaced. */
export const html = htmlTag(displayable);
