/**
 * Buttons that choose the quantity of a figure's cells; undefined without a choice.
 * @param {PageFigure} figure its chart changes with the choice
 * @param {() => void} redraw
 * @returns {HTMLElement | undefined}
 */
export function viewButtons(figure, redraw) {
  /** @type {{ id: string, name: string, value: string, label: string, legend: string, scale: string }[]} */
  const views = figure.chart.shades ?? [];
  if (views.length < 2) return undefined;
  const group = document.createElement("div");
  group.className = "tools views";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", `Quantity shown in “${figure.title}”`);
  const buttons = views.map(({ id: _id, name, ...view }, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = name;
    button.setAttribute("aria-pressed", String(index === 0));
    button.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      figure.chart = { ...figure.chart, ...view };
      redraw();
    });
    return button;
  });
  group.append(...buttons);
  return group;
}
