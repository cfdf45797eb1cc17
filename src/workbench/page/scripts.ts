import { shellText, shellWord } from "../../text/shell.js";

/** A request of the page's, as a script would make it. */
export interface CodeRequest {
  /** Which service is asked. */
  service: "server" | "lab";
  url: string;
  path: string;
  /** What is posted; without it something is read. */
  body?: Record<string, unknown>;
  /** What is read is kept as this file. */
  file?: string;
  /** A job's file that is sent to the path. */
  upload?: { lab: string; job: string; file: string };
}

export const languages = ["curl", "Python", "TypeScript"] as const;
export type Language = (typeof languages)[number];

/** Requests as one script that makes them one after the other. */
export function scriptOf(language: Language, requests: readonly CodeRequest[]): string {
  if (language === "curl") return requests.map(curl).join("\n");
  const steps = requests.map(language === "Python" ? pythonStep : typescriptStep);
  const imports = [...new Set(steps.flatMap((step) => step.imports))];
  const clients = [...new Set(steps.flatMap((step) => step.client ?? []))];
  return [...imports, "", ...clients, ...steps.flatMap(({ lines }) => lines)].join("\n");
}

function curl({ url, path, body, file, upload }: CodeRequest): string {
  const address = shellWord(url + path);
  if (upload !== undefined) {
    const from = `${upload.lab}/lab/v1/jobs/${upload.job}/artifacts/${encodeURIComponent(upload.file)}`;
    return `curl -s -o ${shellWord(upload.file)} ${shellWord(from)}\ncurl -s -T ${shellWord(upload.file)} ${address}`;
  }
  if (body === undefined) return `curl -s ${file === undefined ? "" : `-o ${shellWord(file)} `}${address}`;
  const method = profileIn(path) === undefined ? "" : "-X PUT ";
  return `curl -s ${method}${address} -d ${shellText(JSON.stringify(body, null, 2))}`;
}

/** What a request takes of a script: modules, the client that is asked, and what it is asked. */
interface Step {
  imports: string[];
  client?: string;
  lines: string[];
}

function pythonStep({ service, url, path, body, file, upload }: CodeRequest): Step {
  const [, , , , id, part, artifact] = path.split("/");
  const lab = { imports: ["from tapline_lab import Lab"], client: `lab = Lab(${literal(url)})` };
  if (service === "lab" && path === "/lab/v1/jobs" && body !== undefined) {
    const { operation, model, ...settings } = body;
    const submit = `job = lab.submit(${literal(operation)}, ${literal(model)}, **${literal(settings)})`;
    return { ...lab, lines: [submit, `print(lab.wait(job)["result"])`] };
  }
  if (service === "lab" && part === "cancel") return { ...lab, lines: [`print(lab.cancel(${literal(id)}))`] };
  if (service === "lab" && part === "artifacts") {
    const arguments_ = [id, decodeURIComponent(artifact ?? ""), file].map(literal).join(", ");
    return { ...lab, lines: [`lab.artifact(${arguments_})`] };
  }
  if (service === "lab") return { ...lab, lines: [`print(lab.job(${literal(id)}))`] };
  const model = {
    imports: ["from tapline_lab import ServingModel"],
    client: `model = ServingModel(${new URL(url).port})`,
  };
  if (upload !== undefined) {
    const { name, layer } = probeIn(path);
    return {
      imports: ["from tapline_lab import Lab, ServingModel"],
      client: `lab = Lab(${literal(upload.lab)})\n${model.client}`,
      lines: [
        `probe = lab.job(${literal(upload.job)}).probes()[${layer}]`,
        `numbers = {"bias": probe.bias, "mean": probe.mean, "std": probe.std}`,
        `print(model.put_probe(${literal(name)}, probe.weight, ${layer}, **numbers))`,
      ],
    };
  }
  const profile = profileIn(path);
  if (profile !== undefined) {
    return { ...model, lines: [`print(model.put_profile(${literal(profile)}, **${literal(body)}))`] };
  }
  const made = { "/lab/vectors": "make_vector", "/lab/probes": "make_probe" }[path];
  if (made !== undefined) return { ...model, lines: [`print(model.${made}(**${literal(body)}))`] };
  if (path === "/v1/completions" || path === "/v1/chat/completions") {
    const { messages, prompt, ...request } = body ?? {};
    const [method, first] = path === "/v1/completions" ? ["complete", prompt] : ["chat", messages];
    const asked = `for choice in model.${method}(${literal(first)}, **${literal(request)}):`;
    return { ...model, lines: [asked, "    print(choice)"] };
  }
  return {
    imports: ["import json", "from urllib.request import urlopen"],
    lines: [
      `body = ${literal(body)}`,
      `print(json.load(urlopen(${literal(url + path)}, json.dumps(body).encode())))`,
    ],
  };
}

function typescriptStep({ service, url, path, body, file, upload }: CodeRequest, at: number): Step {
  const json = (value: unknown) => JSON.stringify(value, null, 2);
  const [, , , , id, part, artifact] = path.split("/");
  const lab = {
    imports: [`import { Lab } from "tapline/client";`],
    client: `const lab = new Lab(${json(url)});`,
  };
  if (service === "lab" && path === "/lab/v1/jobs" && body !== undefined) {
    const { operation, model, ...settings } = body;
    const submit = `await lab.submit(${json(operation)}, ${json(model)}, ${json(settings)})`;
    const job = numbered("job", at);
    return {
      ...lab,
      lines: [`const ${job} = ${submit};`, `console.log((await lab.wait(${job})).result);`],
    };
  }
  if (service === "lab" && part === "cancel") {
    return { ...lab, lines: [`console.log(await lab.cancel(${json(id)}));`] };
  }
  if (service === "lab" && part === "artifacts") {
    const words = [id, decodeURIComponent(artifact ?? ""), file].map(json).join(", ");
    return { ...lab, lines: [`await lab.artifact(${words});`] };
  }
  if (service === "lab") return { ...lab, lines: [`console.log(await lab.job(${json(id)}));`] };
  const model = {
    imports: [`import { ServingModel } from "tapline/client";`],
    client: `const model = new ServingModel(${json(url)});`,
  };
  if (upload !== undefined) {
    const { name, layer } = probeIn(path);
    return {
      imports: [
        `import { readFile } from "node:fs/promises";`,
        `import { Lab, ServingModel } from "tapline/client";`,
      ],
      client: `const lab = new Lab(${json(upload.lab)});\n${model.client}`,
      lines: [
        `await lab.artifact(${[upload.job, upload.file, upload.file].map(json).join(", ")});`,
        `const file = await readFile(${json(upload.file)});`,
        `console.log(await model.putProbe(${json(name)}, file, { layer: ${layer} }));`,
      ],
    };
  }
  const profile = profileIn(path);
  if (profile !== undefined) {
    return { ...model, lines: [`console.log(await model.putProfile(${json(profile)}, ${json(body)}));`] };
  }
  const made = { "/lab/vectors": "makeVector", "/lab/probes": "makeProbe" }[path];
  if (made !== undefined) return { ...model, lines: [`console.log(await model.${made}(${json(body)}));`] };
  if (path === "/v1/completions" || path === "/v1/chat/completions") {
    const { messages, prompt, ...request } = body ?? {};
    const first = path === "/v1/completions" ? prompt : messages;
    const answers = numbered("answers", at);
    return {
      ...model,
      lines: [
        `const ${answers} = await model.answers(${json(first)}, { request: ${json(request)} });`,
        `for (const { text, tapline } of ${answers}) console.log(text, tapline);`,
      ],
    };
  }
  const name = numbered("answer", at);
  return {
    imports: [],
    lines: [
      `const ${name} = await fetch(${json(url + path)}, {`,
      `  method: "POST",`,
      `  headers: { "Content-Type": "application/json" },`,
      `  body: JSON.stringify(${json(body)}),`,
      "});",
      `console.log(await ${name}.json());`,
    ],
  };
}

/** A variable of the request at a place in the script. */
function numbered(name: string, at: number): string {
  return at === 0 ? name : `${name}${at + 1}`;
}

/** The name and layer in the address of a probe that is stored. */
function probeIn(path: string): { name: string; layer: number } {
  const { pathname, searchParams } = new URL(path, "http://localhost");
  return {
    name: decodeURIComponent(pathname.split("/").at(-1) as string),
    layer: Number(searchParams.get("layer")),
  };
}

/** The name in the address of a profile, which is put and not posted. */
function profileIn(path: string): string | undefined {
  const [, name] = /^\/lab\/profiles\/([^/]+)$/.exec(path) ?? [];
  return name === undefined ? undefined : decodeURIComponent(name);
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
