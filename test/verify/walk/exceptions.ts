/** Blocks that are not pasted: what they begin with, what they would need, and who runs them instead. */
export interface Exception {
  page: string;
  begins: string;
  why: string;
}

const token = "a token, which a person makes on the website";

export const exceptions: readonly Exception[] = [
  {
    page: "clients/python/agent_research/README.md",
    begins: "from agent_research import",
    why: `${token}; test/stress/clients/docs.test.ts runs it`,
  },
  {
    page: "docs/agents.md",
    begins: "export AGENT_RESEARCH_URL",
    why: `${token}; test/stress/mcp/agents-page.test.ts checks the names`,
  },
  {
    page: "docs/agents.md",
    begins: "import { DraftMayExistError",
    why: `${token}; test/stress/mcp/agents-page.test.ts runs it`,
  },
  {
    page: "docs/agents.md",
    begins: "tapline study list",
    why: `${token}; test/stress/mcp/agents-page.test.ts runs it`,
  },
  {
    page: "docs/models.md",
    begins: "tapline pull owner/name",
    why: "the hub; test/models runs them against its own one",
  },
  {
    page: "docs/profiles.md",
    begins: "lm_eval --model",
    why: "lm-evaluation-harness; npm run verify:lm-eval runs it",
  },
  {
    page: "docs/profiles.md",
    begins: "inspect eval task.py",
    why: "Inspect; npm run verify:inspect runs its like",
  },
  {
    page: "docs/python.md",
    begins: "python3 -m venv",
    why: "a package registry; test/stress/clients/packages.test.ts builds and installs both",
  },
  {
    page: "docs/python.md",
    begins: "export AGENT_RESEARCH_URL",
    why: `${token}; test/stress/clients/docs.test.ts sets them`,
  },
  {
    page: "docs/python.md",
    begins: "import uuid",
    why: `${token}; test/stress/clients/docs.test.ts runs it`,
  },
  {
    page: "docs/reproduce.md",
    begins: "tapline reproduce https",
    why: "a studies service; test/study-package/reproduce.test.ts runs a similar one on its own service",
  },
  {
    page: "docs/scaling.md",
    begins: "node scripts/build/tools.js rpc-server",
    why: "other machines; test/rpc runs its like on this one",
  },
  {
    page: "docs/scaling.md",
    begins: "tapline serve --model demo",
    why: "other machines; test/router runs its like",
  },
  {
    page: "docs/experiments/graph.md",
    begins: "circuit-tracer start-server",
    why: "circuit-tracer; test/lab/graph-circuit-tracer.test.ts checks the file by hand",
  },
  {
    page: "docs/experiments/routing.md",
    begins: "tapline inspect --model ./mixture.gguf",
    why: "a model with experts; test/lab/routing.test.ts asks for the same of one",
  },
  {
    page: "models/demo/README.md",
    begins: "apt-get install",
    why: "hours of training, and PyTorch",
  },
];
