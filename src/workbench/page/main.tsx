import { render } from "preact";
import { base, palette } from "../../report/style.js";
import { App } from "./app.js";
import { hasLinkToken, signIn, whenSignedOut } from "./session.js";
import { readState } from "./store.js";
import { followEvents } from "./stream.js";
import { SignedOut } from "./views/signed-out.js";

const root = document.getElementById("app") as HTMLElement;

const shared = new CSSStyleSheet();
// In a layer, so that the page's own rules take precedence.
shared.replaceSync(`${palette}@layer base { ${base} }`);
document.adoptedStyleSheets.push(shared);

const theme = localStorage.getItem("tapline-theme");
if (theme !== null) document.documentElement.dataset.theme = theme;

// Opening a link where the page is already open only changes the fragment of the address.
addEventListener("hashchange", () => {
  if (hasLinkToken()) location.reload();
});

const showSignedOut = (sentence: string) => render(<SignedOut sentence={sentence} />, root);
whenSignedOut(showSignedOut);
const refused = await signIn();
if (refused !== undefined) showSignedOut(refused);
else {
  try {
    const { begin } = followEvents();
    await readState();
    begin();
    render(<App />, root);
  } catch (error) {
    showSignedOut((error as Error).message);
  }
}
