/** The generated part of the Python clients: `submit`, typed for each operation. */
import type { TObject } from "typebox";
import { contracts, type Operation, operations } from "../../src/operations/contracts.js";
import type { Module } from "./typed-dicts.js";

const doc = `Submits an experiment. It is accepted, not finished: use wait().

        \`model\` is "demo", a hub id or the path of a model; a \`Path\` is made absolute, because the service
        has a different working directory. \`settings\` are the fields of a submission, which the service
        validates: layers, max_input_tokens, max_tokens, seed, revision and those of the operation. Ranges and
        NumPy arrays and numbers are accepted as lists and numbers; fields that are None are ignored.`;

const resultOf = (operation: Operation) =>
  (contracts[operation].result as { title?: string }).title as string;

/**
 * The base classes of `Lab` and `AsyncLab`.
 * @param own source of `Lab`: operations with a method there get none here
 */
export function submitting(own: string): NonNullable<Module["more"]> {
  const others = operations.filter((operation) => !own.includes(`    def ${operation}(`));
  return {
    typing: ["TYPE_CHECKING", "Any", "overload"],
    imports: "if TYPE_CHECKING:\n    import os\n\n    from ._job import Job",
    classes: [false, true].map((isAsync) => classText(isAsync, others)),
  };
}

function classText(isAsync: boolean, others: readonly Operation[]): string {
  const def = isAsync ? "async def" : "def";
  const wait = isAsync ? "await " : "";
  const signature = (operation: string, result: string) => `    ${def} submit(
        self, operation: ${operation}, model: str | os.PathLike[str], **settings: Any
    ) -> Job[${result}]:`;
  const overloads = operations.map((operation) =>
    `    @overload\n${signature(`Literal["${operation}"]`, resultOf(operation))} ...`.trimEnd(),
  );
  const methods = others.map((operation) => {
    const { description, properties } = contracts[operation].submission as unknown as TObject & {
      description: string;
    };
    const fields = Object.keys(properties).filter((field) => field !== "operation" && field !== "model");
    return `
    ${def} ${operation}(self, model: str | os.PathLike[str], **settings: Any) -> Job[${resultOf(operation)}]:
        """${description}

        Settings: ${fields.join(", ")}.
        """
        return ${wait}self.submit("${operation}", model, **settings)
`;
  });
  return `class ${isAsync ? "AsyncSubmitting" : "Submitting"}:
    """Methods of \`${isAsync ? "AsyncLab" : "Lab"}\` for each operation."""

${overloads.join("\n")}
    @overload
${signature("str", "Any")} ...
${signature("str", "Any")}
        """${isAsync ? "Submits an experiment, like Lab.submit()." : `${doc}\n        `}"""
        return ${wait}self._submit(operation, model, settings)

    ${def} _submit(
        self, operation: str, model: str | os.PathLike[str], settings: dict[str, Any]
    ) -> Job[Any]:
        raise NotImplementedError
${methods.join("")}`;
}
