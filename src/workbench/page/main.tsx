import { render } from "preact";
import { palette } from "../../report/style.js";
import { App } from "./app.js";
import { holdsToken, signIn, whenSignedOut } from "./session.js";
import { readState } from "./store.js";
import { followEvents } from "./stream.js";
import { SignedOut } from "./views/signed-out.js";

const root = document.getElementById("app") as HTMLElement;

const colors = new CSSStyleSheet();
colors.replaceSync(palette);
document.adoptedStyleSheets.push(colors);

const theme = localStorage.getItem("tapline-theme");
if (theme !== null) document.documentElement.dataset.theme = theme;

// A link that is opened where the page stands already changes the address's end alone.
addEventListener("hashchange", () => {
  if (holdsToken()) location.reload();
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
