import type { Command } from "commander";

/** Examples of commands whose own files have none, by full command name. */
const examples: Record<string, string[]> = {
  demo: [
    "tapline demo",
    'tapline demo --model ./model.gguf --prompt "The capital of Italy is" \\\n    --out italy',
    "tapline demo --json | jq .chat.answer",
  ],
  serve: [
    "tapline serve",
    "tapline serve --model ./model.gguf --ctx-size 4096 --parallel 8",
    'tapline serve --host 0.0.0.0 --api-key "$KEY"',
  ],
  workbench: ["tapline workbench", "tapline workbench ./model.gguf --no-open", "tapline workbench --link"],
  router: ["tapline router --backend http://127.0.0.1:8971 --backend http://127.0.0.1:8973"],
  lab: ["tapline lab", "tapline lab --queue 16 --home ./experiments"],
  studies: ["tapline studies --dev --seed-data", "tapline studies --config /etc/tapline/studies.json"],
  "studies backup": ["tapline studies backup studies-backup.jsonl"],
  "studies restore": ["tapline studies restore studies-backup.jsonl --data ./new"],
  "studies approve": ["tapline studies approve publisher somebody@example.org"],
  "studies disapprove": ["tapline studies disapprove publisher somebody@example.org"],
  "studies remove": ['tapline studies remove "$STUDY" --reason "Copied from elsewhere."'],
  "studies reinstate": ['tapline studies reinstate "$STUDY"'],
  "studies hide": ['tapline studies hide "$COMMENT" --reason "An advertisement."'],
  "studies show": ['tapline studies show "$COMMENT"'],
  "studies erase": ['tapline studies erase "$COMMENT" --reason "Names a private person."'],
  "studies suspend": ['tapline studies suspend @somebody --reason "Advertisements after a warning."'],
  "studies unsuspend": ["tapline studies unsuspend @somebody"],
  "studies reports": ["tapline studies reports"],
  "studies dismiss": ['tapline studies dismiss "$REPORT"'],
  "studies audit": ['tapline studies audit --target "$STUDY"', "tapline studies audit --limit 20"],
  vector: ["tapline vector list"],
  "vector list": ["tapline vector list"],
  "vector show": ["tapline vector show polite"],
  "vector add": ["tapline vector add polite polite.gguf", "tapline vector add polite row.npz --layer 12"],
  "vector export": ["tapline vector export polite polite.gguf"],
  "vector rm": ["tapline vector rm polite"],
  lens: ["tapline lens list"],
  "lens list": ["tapline lens list"],
  "lens show": ["tapline lens show demo"],
  "lens rm": ["tapline lens rm demo"],
  dictionary: ["tapline dictionary list"],
  "dictionary list": ["tapline dictionary list"],
  "dictionary show": ["tapline dictionary show gemma"],
  "dictionary rm": ["tapline dictionary rm gemma"],
  "probe list": ["tapline probe list"],
  "probe show": ["tapline probe show truth"],
  "probe add": ["tapline probe add truth probe-layer-5.npz --layer 5"],
  "probe export": ["tapline probe export truth truth.safetensors"],
  "probe rm": ["tapline probe rm truth"],
  check: ["tapline check make --model demo", "tapline check budget.json --model demo"],
  profile: ["tapline profile list"],
  "profile list": ["tapline profile list"],
  "profile show": ["tapline profile show polite"],
  "profile rm": ["tapline profile rm polite"],
  "mcp research": ["tapline mcp research"],
  "mcp lab": ["tapline mcp lab --artifacts ./downloads"],
};

/** Appends {@link examples} to the help of their commands. */
export function addExamples(program: Command, path: string[] = []): void {
  for (const command of program.commands) {
    const words = [...path, command.name()];
    const lines = examples[words.join(" ")];
    if (lines !== undefined) {
      command.addHelpText("after", `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`);
    }
    addExamples(command, words);
  }
}
