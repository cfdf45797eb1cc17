import { servingDocument } from "../../../src/inference/endpoints.js";
import { openApiDocument } from "../../../src/lab/endpoints.js";
import { openApi } from "../../../src/studies/api/endpoints.js";
import { anchorOf, code, escaped, table } from "./markdown.js";
import { fieldsOf, type Schema, typeText } from "./schemas.js";

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}

type Content = Record<string, { schema?: Schema }>;

interface Operation {
  tags?: string[];
  summary: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { description: string; content?: Content }>;
}

interface OpenApi {
  info: { title: string; version: string; description: string };
  tags?: { name: string; description: string }[];
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, Schema> };
}

interface Service {
  file: string;
  title: string;
  about: string;
  document: unknown;
}

/** Addresses as in the documentation; a running service puts its own into its document. */
const services: readonly Service[] = [
  {
    file: "serve-api.md",
    title: "API of tapline serve",
    about:
      "`tapline serve`, by default at `http://127.0.0.1:8971`. [The inference server](../serving.md) and [live requests](../live.md) explain it.",
    document: servingDocument("http://127.0.0.1:8971"),
  },
  {
    file: "lab-api.md",
    title: "API of tapline lab",
    about:
      "`tapline lab`, by default at `http://127.0.0.1:8980`; a running Lab returns this as OpenAPI at `/lab/v1/openapi.json`. [The Lab](../lab.md) explains it.",
    document: openApiDocument("http://127.0.0.1:8980"),
  },
  {
    file: "studies-api.md",
    title: "Research agent API",
    about:
      "`tapline studies` under `/api/v1`; a running service returns this as OpenAPI at `/api/v1/openapi.json`. [Studies](../studies.md) and [agents](../agents.md) explain it.",
    document: openApi("https://studies.example.org"),
  },
];

/** The pages of the HTTP APIs, by their path in the repository. */
export function httpPages(): Record<string, string> {
  return Object.fromEntries(services.map((service) => [`docs/reference/${service.file}`, httpPage(service)]));
}

/** An OpenAPI document as a page: every endpoint, then every schema. */
export function httpPage({ title, about, document }: Service): string {
  const { info, tags = [], paths, components } = JSON.parse(JSON.stringify(document)) as OpenApi;
  const parts = [
    `# ${title}`,
    "Generated from the OpenAPI document by `npm run docs:reference`; do not edit.",
    `${about} ${escaped(info.description)}`,
  ];
  const operations = Object.entries(paths).flatMap(([path, { parameters = [], servers: _, ...methods }]) =>
    Object.entries(methods as Record<string, Operation>).map(([method, operation]) => ({
      ...operation,
      at: `${method.toUpperCase()} ${path}`,
      parameters: [...(parameters as Parameter[]), ...(operation.parameters ?? [])],
    })),
  );
  parts.push(
    table(
      ["Endpoint", "Purpose"],
      operations.map(({ at, summary }) => [`[${code(at)}](#${anchorOf(at)})`, escaped(summary)]),
    ),
  );
  const groups = tags.length > 0 ? tags : [{ name: "", description: "" }];
  for (const { name, description } of groups) {
    const own = operations.filter((operation) => name === "" || operation.tags?.includes(name));
    if (name !== "") parts.push(`## ${name}`, escaped(description));
    else parts.push("## Endpoints");
    for (const operation of own) parts.push(...operationParts(operation));
  }
  parts.push("## Schemas");
  for (const [name, schema] of Object.entries(components.schemas).sort(([a], [b]) => (a < b ? -1 : 1))) {
    parts.push(`### ${name}`, ...schemaParts(schema));
  }
  return `${parts.join("\n\n")}\n`;
}

function operationParts({
  at,
  summary,
  description,
  parameters = [],
  requestBody,
  responses,
}: Operation & { at: string }): string[] {
  const about = [summary, description].filter((text) => text !== undefined).map((text) => sentence(text));
  const parts = [`### ${at}`, escaped(about.join(" "))];
  if (parameters.length > 0) {
    parts.push(
      table(
        ["Parameter", "In", "Type", "Description"],
        parameters.map(({ name, in: place, schema, description: text }) => [
          code(name),
          place,
          typeText(schema),
          escaped(text ?? schema.description ?? ""),
        ]),
      ),
    );
  }
  if (requestBody !== undefined) {
    const [, schema] = contentOf(requestBody.content);
    parts.push(`Body${requestBody.required ? "" : " (optional)"}: ${schema}`);
  }
  parts.push(
    table(
      ["Status", "Meaning", "Body"],
      Object.entries(responses).map(([status, { description: text, content }]) => [
        status,
        escaped(text),
        content === undefined ? "" : contentOf(content)[1],
      ]),
    ),
  );
  return parts;
}

/** The media type and the type of a content's first entry. */
function contentOf(content: Content): [string, string] {
  const described = Object.entries(content).map(([media, { schema }]) =>
    schema === undefined ? code(media) : typeText(schema),
  );
  return [Object.keys(content)[0] ?? "", described.join(" or ")];
}

function schemaParts(schema: Schema): string[] {
  const parts = schema.description === undefined ? [] : [escaped(schema.description)];
  if (schema.properties === undefined) return [...parts, typeText({ ...schema, description: undefined })];
  const rows = fieldsOf(schema).map(({ name, type, required, description }) => [
    code(name),
    type,
    required ? "required" : "",
    escaped(description),
  ]);
  return [...parts, table(["Field", "Type", "", "Description"], rows)];
}

const sentence = (text: string) => (/[.:)]$/.test(text) ? text : `${text}.`);
