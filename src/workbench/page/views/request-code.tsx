import { useState } from "preact/hooks";
import { type CodeRequest, type Language, languages, scriptOf } from "../scripts.js";
import { Button } from "./form.js";
import { Menu } from "./menu.js";

interface RequestCodeProps {
  /** The request, or a function that builds it from the form. */
  request: CodeRequest | CodeRequest[] | (() => CodeRequest | CodeRequest[]);
  /** Names the action if there are several on the page. */
  of?: string;
}

/** The request behind an action, as a script. */
export function RequestCode({ request, of }: RequestCodeProps) {
  const [open, setOpen] = useState(false);
  const name = of === undefined ? "As a script" : `As a script: ${of}`;
  return (
    <details class="code" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{name}</summary>
      {open && <Script request={request} name={name} />}
    </details>
  );
}

/** The script of an action, in a menu at the end of its last row. */
export function ScriptMenu({ request, of }: RequestCodeProps) {
  return (
    <div class="at-end">
      <Menu label="Script" {...(of !== undefined && { name: `Script: ${of}` })}>
        <RequestCode request={request} {...(of !== undefined && { of })} />
      </Menu>
    </div>
  );
}

/** Generated on opening. */
function Script({ request, name }: { request: RequestCodeProps["request"]; name: string }) {
  const [language, set] = useState<Language>("curl");
  let code: string;
  try {
    const asked = typeof request === "function" ? request() : request;
    code = scriptOf(language, [asked].flat());
  } catch (error) {
    return <p class="problem">{(error as Error).message}</p>;
  }
  return (
    <>
      <div class="row" role="group" aria-label={`${name}, language`}>
        {languages.map((one) => (
          <Button key={one} class="quiet" aria-pressed={one === language} onClick={() => set(one)}>
            {one}
          </Button>
        ))}
        <Button class="quiet" onClick={() => void navigator.clipboard.writeText(code)}>
          Copy
        </Button>
      </div>
      <pre tabIndex={0} role="region" aria-label={`${name}, ${language}`}>
        <code>{code}</code>
      </pre>
    </>
  );
}
