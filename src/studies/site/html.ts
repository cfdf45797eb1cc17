import { htmlTag } from "../../markup/html.js";
import { displayable } from "../text/display.js";

export { Html, type Value } from "../../markup/html.js";

/** The site's templates: text is escaped, and what hides in it is shown. */
export const html = htmlTag(displayable);
