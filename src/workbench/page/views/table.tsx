import type { ComponentChildren, Ref } from "preact";

/** A column's title: text, right-aligned above numbers, or only for screen readers. */
export type Title = string | { number: string } | { hidden: string };

export function Head({ titles }: { titles: readonly Title[] }) {
  return (
    <thead>
      <tr>
        {titles.map((title, at) => (
          <th
            scope="col"
            key={at}
            {...(typeof title === "object" && "number" in title && { class: "number" })}
          >
            {typeof title === "string" ? (
              title
            ) : "number" in title ? (
              title.number
            ) : (
              <span class="visually-hidden">{title.hidden}</span>
            )}
          </th>
        ))}
      </tr>
    </thead>
  );
}

interface TableProps {
  label: string;
  titles: readonly Title[];
  class?: string;
  /** The scrolling element. */
  box?: Ref<HTMLDivElement>;
  children: ComponentChildren;
}

/** A scrolling table. */
export function Table({ label, titles, box = null, children, ...table }: TableProps) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label} ref={box}>
      <table {...table}>
        <Head titles={titles} />
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function DataTable({ head, rows, label }: { head: string[]; rows: string[][]; label: string }) {
  return (
    <Table label={`Data of “${label}”`} titles={head}>
      {rows.map((row, at) => (
        <tr key={at}>
          {row.map((cell, column) => (
            <td key={column}>{cell}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
}
