/** What draws figures, loaded when the first one is shown: the report's own functions. */
import "./libraries.js";

export { draw } from "../../report/page/draw.js";
export { stepWithKeys } from "../../report/page/keys.js";
export { download, save } from "../../report/page/save.js";
export { theme } from "../../report/page/theme.js";
export { openMap } from "./map.js";
