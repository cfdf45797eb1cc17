import { useState } from "preact/hooks";

export interface CodeRequest {
  /** Which service is asked. */
  service: "server" | "lab";
  url: string;
  path: string;
  body: Record<string, unknown>;
}

const languages = ["curl", "Python", "TypeScript"] as const;
type Language = (typeof languages)[number];

/** The request that an action makes, as a script would make it. */
export function RequestCode({ request }: { request: CodeRequest }) {
  const [language, set] = useState<Language>("curl");
  const code = write[language](request);
  return (
    <details class="code">
      <summary>As a script</summary>
      <div class="row" role="group" aria-label="Language">
        {languages.map((name) => (
          <button
            key={name}
            type="button"
            class="quiet"
            aria-pressed={name === language}
            onClick={() => set(name)}
          >
            {name}
          </button>
        ))}
        <button type="button" class="quiet" onClick={() => void navigator.clipboard.writeText(code)}>
          Copy
        </button>
      </div>
      <pre tabIndex={0} role="region" aria-label={`As ${language}`}>
        <code>{code}</code>
      </pre>
    </details>
  );
}

const write: Record<Language, (request: CodeRequest) => string> = {
  curl,
  Python: python,
  TypeScript: typescript,
};

function curl({ url, path, body }: CodeRequest): string {
  const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `curl -s ${url}${path} -d '${quoted}'`;
}

function python({ service, url, path, body }: CodeRequest): string {
  if (service === "lab") {
    const { operation, model, ...settings } = body;
    return [
      "from tapline import Lab",
      "",
      `lab = Lab(${literal(url)})`,
      `job = lab.submit(${literal(operation)}, ${literal(model)}, **${literal(settings)})`,
      `print(lab.wait(job)["result"])`,
    ].join("\n");
  }
  const { messages, prompt, ...request } = body;
  const [method, first] = path === "/v1/completions" ? ["complete", prompt] : ["chat", messages];
  return [
    "from tapline import ServingModel",
    "",
    `model = ServingModel(${new URL(url).port})`,
    `for choice in model.${method}(${literal(first)}, **${literal(request)}):`,
    "    print(choice)",
  ].join("\n");
}

function typescript({ service, url, path, body }: CodeRequest): string {
  const json = (value: unknown) => JSON.stringify(value, null, 2);
  if (service === "lab") {
    const { operation, model, ...settings } = body;
    return [
      `import { Lab } from "tapline/client";`,
      "",
      `const lab = new Lab(${json(url)});`,
      `const job = await lab.submit(${json(operation)}, ${json(model)}, ${json(settings)});`,
      "console.log((await lab.wait(job)).result);",
    ].join("\n");
  }
  const { messages, prompt, ...request } = body;
  const first = path === "/v1/completions" ? prompt : messages;
  return [
    `import { ServingModel } from "tapline/client";`,
    "",
    `const model = new ServingModel(${json(url)});`,
    `const answers = await model.answers(${json(first)}, { request: ${json(request)} });`,
    "for (const { text, tapline } of answers) console.log(text, tapline);",
  ].join("\n");
}

/** A value as Python writes it. */
export function literal(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    const pairs = Object.entries(value).map(([key, one]) => `${literal(key)}: ${literal(one)}`);
    return `{${pairs.join(", ")}}`;
  }
  // JSON's texts and numbers are Python's, too.
  return JSON.stringify(value);
}
