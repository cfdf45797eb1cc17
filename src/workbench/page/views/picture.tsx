import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { download } from "../../../report/page/save.js";
import { Button, Problem, useTrying } from "./form.js";
import { Menu } from "./menu.js";

const kinds = ["SVG", "PNG", "CSV"] as const;
export type SaveKind = "svg" | "png" | "csv";

export function saveText(name: string, type: string, text: string): void {
  download(name, new Blob([text], { type }));
}

/** The menu that saves a picture; every picture of the page has one. */
export function SaveTools({ title, save }: { title: string; save: (kind: SaveKind) => Promise<void> }) {
  const { problem, trying } = useTrying();
  return (
    <Menu label="Export" name={`Export “${title}”`}>
      <div class="tools" role="group" aria-label={`Save “${title}”`}>
        {kinds.map((kind) => (
          <Button
            key={kind}
            class="quiet"
            aria-label={`Save “${title}” as ${kind}`}
            onClick={() => void trying(() => save(kind.toLowerCase() as SaveKind))}
          >
            {kind}
          </Button>
        ))}
        <Problem sentence={problem} />
      </div>
    </Menu>
  );
}

/** The data of a picture, for CSV. */
export interface Numbers {
  head: string[];
  rows: (string | number | null)[][];
}

interface HtmlPictureProps {
  title: string;
  /** File name without extension. */
  name: string;
  numbers: () => Numbers;
  children: ComponentChildren;
}

/** Coloured words or bars in a table, which can be saved like every other picture. */
export function HtmlPicture({ title, name, numbers, children }: HtmlPictureProps) {
  const shown = useRef<HTMLDivElement>(null);
  const save = async (kind: SaveKind) => {
    const { saveElement, saveTable } = await import("../pictures.js");
    if (kind !== "csv") return saveElement(kind, name, title, shown.current as HTMLElement);
    const { head, rows } = numbers();
    saveTable(name, head, rows);
  };
  return (
    <div class="picture">
      <div ref={shown}>{children}</div>
      <SaveTools title={title} save={save} />
    </div>
  );
}
