import { draw, place } from "./draw.js";
import { stepWithKeys } from "./keys.js";
import { download, save } from "./save.js";
import { paperTheme, theme } from "./theme.js";
import { viewButtons } from "./views.js";

const root = document.documentElement;
root.classList.add("scripted");

/** @type {{name: string, figures: PageFigure[], job: object}} */
const data = JSON.parse(element("data").textContent ?? "");
/** Width between the margins of A4 and Letter, in pixels. */
const printedWidth = 620;

const views = data.figures.map((figure) => {
  const section = element(figure.id);
  const container = /** @type {HTMLElement} */ (section.querySelector(".chart"));
  const status = /** @type {HTMLElement} */ (section.querySelector(".detail"));
  /** @type {Panel[]} */
  let panels = [];
  const show = (/** @type {Space} */ space) => {
    const drawn = draw(figure, space);
    panels = drawn.panels;
    place(container, drawn);
  };
  const choices = viewButtons(figure, () => show(here()));
  if (choices !== undefined) container.before(choices);
  /** @returns {Space} */
  function here() {
    return { width: Math.max(240, container.clientWidth), theme: theme() };
  }
  stepWithKeys(container, status, () => panels, figure.details);
  section.querySelector(".save")?.addEventListener("click", (event) => {
    const kind = /** @type {HTMLElement} */ (event.target).dataset.save;
    if (kind !== undefined) void save(kind, figure, container, theme(), `${data.name}-${figure.id}`);
  });
  return { show, here };
});

/** @param {string} id */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

function showAll() {
  for (const { show, here } of views) show(here());
}

let shownWidth = 0;
new ResizeObserver(() => {
  const width = element("content").clientWidth;
  if (width === shownWidth) return;
  shownWidth = width;
  showAll();
}).observe(element("content"));

const button = element("theme");
const choices = [undefined, "light", "dark"];
button.addEventListener("click", () => {
  const next = choices[(choices.indexOf(root.dataset.theme) + 1) % choices.length];
  if (next === undefined) delete root.dataset.theme;
  else root.dataset.theme = next;
  button.textContent = `Theme: ${next ?? "system"}`;
  showAll();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showAll);

element("print").addEventListener("click", () => print());
/** Sections that are open only in print. @type {HTMLDetailsElement[]} */
let opened = [];
addEventListener("beforeprint", () => {
  opened = [
    .../** @type {NodeListOf<HTMLDetailsElement>} */ (
      document.querySelectorAll(".passage details:not([open])")
    ),
  ];
  for (const closed of opened) closed.open = true;
  for (const { show } of views) show({ width: printedWidth, theme: paperTheme() });
});
addEventListener("afterprint", () => {
  for (const closed of opened) closed.open = false;
  showAll();
});

element("save-job").addEventListener("click", () => {
  download(`${data.name}.json`, new Blob([JSON.stringify(data.job, null, 2)], { type: "application/json" }));
});
