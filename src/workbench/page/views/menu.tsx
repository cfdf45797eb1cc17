import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface MenuProps {
  label: string;
  /** Names it among several of the page; begins with the label. */
  name?: string;
  children: ComponentChildren;
}

/** A button that opens a menu of actions. The menu closes with Escape, and when the user goes elsewhere. */
export function Menu({ label, name = label, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const box = menu.current as HTMLDetailsElement;
    const elsewhere = ({ type, target }: Event) => {
      if (!box.open || !(target instanceof Node) || target === document || box.contains(target)) return;
      // A view that has just been shown takes the focus itself, with this menu in it.
      if (type === "focusin" && target.contains(box)) return;
      box.open = false;
    };
    const events = ["pointerdown", "focusin"] as const;
    for (const event of events) document.addEventListener(event, elsewhere);
    return () => {
      for (const event of events) document.removeEventListener(event, elsewhere);
    };
  }, []);
  return (
    <details
      class="menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !event.currentTarget.open) return;
        event.stopPropagation();
        event.currentTarget.open = false;
        event.currentTarget.querySelector("summary")?.focus();
      }}
    >
      <summary aria-label={name}>{label}</summary>
      <div class="menu-box">{children}</div>
    </details>
  );
}
