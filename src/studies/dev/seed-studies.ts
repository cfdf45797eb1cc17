import { randomUUID } from "node:crypto";
import type { Entry, StudyPackage } from "../../contracts/studies/index.js";

export interface SeedStudy {
  study: StudyPackage;
  comments: { body: string; answers?: number }[];
}

type Text = Pick<StudyPackage, "title" | "question" | "hypothesis" | "method" | "finding" | "limitations">;

interface Sample extends Text {
  model: string;
  omissions?: string[];
  entries: Omit<Entry, "id" | "parent">[];
  comments: SeedStudy["comments"];
}

/** Sample studies such as people run in an afternoon, with made-up numbers. */
export function seedStudies(): SeedStudy[] {
  return samples.map(({ model, omissions = [], entries, comments, ...text }) => {
    const root = randomUUID();
    const below = entries.map((entry) => ({ id: randomUUID(), parent: root, ...entry }));
    const study: StudyPackage = {
      schemaVersion: 1,
      ...text,
      license: "CC-BY-4.0",
      model: { name: model, revision: null, runtime: "tapline 0.3.0, llama.cpp 0.5.0, CPU" },
      omissions,
      entries: [{ id: root, parent: null, kind: "note", title: "Plan", note: text.method }, ...below],
    };
    return { study, comments };
  });
}

function result(title: string, prompt: string, answer: string, note?: string): Sample["entries"][number] {
  const settings = { temperature: 0, seed: 0, maxTokens: 64, thinking: "off" } as const;
  const optional = note === undefined ? {} : { note };
  return { kind: "result", title, prompt, answer, settings, finishReason: "stop", ...optional };
}

const samples: Sample[] = [
  {
    model: "demo-2M",
    title: "Scaling one block output up makes the demo model repeat itself",
    question: "What does multiplying the residual stream after one block by 1.5 do to greedy continuations?",
    hypothesis: "A little scaling is harmless; a lot of it makes the next token too certain.",
    method: "Compare on 12 prompts, strengths 0.5, 1, 1.5 and 2, layer 2 of 4, last token only.",
    finding:
      "At 1.5 the top probability rises on 11 of 12 prompts; at 2, nine continuations fall into loops of one to three tokens.",
    limitations: "One tiny model trained on synthetic text. Greedy decoding only.",
    entries: [
      result("Strength 1", "The river ran past the", "mill and the old stone bridge."),
      result(
        "Strength 2",
        "The river ran past the",
        "mill mill mill mill mill",
        "Loops from the second token.",
      ),
    ],
    comments: [
      { body: "Did you try the same with the norm kept fixed, changing only the direction?" },
      { body: "Not yet. With ablation at 0.5 there are no loops, so the norm may matter.", answers: 0 },
      { body: "I reran this on the embedded model: 10 of 12 prompts rise for me, same seed." },
    ],
  },
  {
    model: "Qwen2.5-0.5B-Instruct",
    title: "A linear probe finds past tense from block 6 on",
    question: "From which block on can a linear probe distinguish past from present tense?",
    hypothesis: "Early: tense is mostly spelled out in the verb.",
    method:
      "256 sentences, half in each tense, no verb shared between splits. Probes at blocks 0, 3, 6, 9, 12.",
    finding: "Accuracy 0.61, 0.78, 0.97, 0.98, 0.97 against a majority of 0.5; shuffled labels 0.49 to 0.53.",
    limitations: "Templates made by hand. The probe reads the last token, which is often the full stop.",
    omissions: ["The 256 sentences: their source forbids redistribution."],
    entries: [
      result("Block 6, test split", "The gardeners watered the roses.", "past, score 4.2"),
      { kind: "error", title: "Block 24", note: "The model has only 24 blocks, 0 to 23." },
    ],
    comments: [{ body: "Shuffled labels near one half are reassuring. What about irregular verbs only?" }],
  },
  {
    model: "Llama-3.2-1B-Instruct",
    title: "The difference of two prompts steers politeness, until it does not",
    question: "How far can one steering vector push politeness before the text breaks?",
    hypothesis: "Up to about four times the unit vector.",
    method: "Steer at block 8 with a polite and a blunt prompt, strengths -4 to 4, eight prompts.",
    finding: "From -2 to 3 the tone follows the strength. Beyond, sentences lose their subject.",
    limitations: "Judged by one reader. Politeness here is English office politeness.",
    entries: [
      result("Strength -2", "Ask a colleague for the report.", "Send me the report."),
      result("Strength 0", "Ask a colleague for the report.", "Could you send me the report?"),
      result("Strength 3", "Ask a colleague for the report.", "Would you be so kind as to share the report?"),
    ],
    comments: [
      { body: "Lovely table. Could you publish the two prompts that make the vector?" },
      { body: "They are in the package, entries 2 and 4.", answers: 0 },
      { body: "Found them, thank you.", answers: 1 },
    ],
  },
  {
    model: "SmolLM2-360M",
    title: "What 64 sparse features of one block fire on",
    question: "Are the most frequent features of a small autoencoder readable?",
    hypothesis: "About half of the top sixteen have a one-word description.",
    method: "Sparse autoencoder, 64 features, 500 steps on 512 short texts, block 10.",
    finding:
      "Nine of sixteen: digits, line starts, proper names, negation, months, quotes, colons, units, question words. 11 features are dead.",
    limitations: "512 texts are few; the features are coarse. Labels are one person's.",
    entries: [
      result("Feature 12", "not, never, nobody, n't", "negation", "Mean activation 3.1 on its top examples."),
    ],
    comments: [],
  },
  {
    model: "Mistral-7B-Instruct-v0.3",
    title: "Patching a city's last token moves its country, but only between blocks 14 and 19",
    question: "Where does a donor's final-token state carry the fact across?",
    hypothesis: "In the middle of the network.",
    method: "Patch from a donor prompt at each even block, target token the donor's country, 20 pairs.",
    finding:
      "The probability of the donor's country passes 0.5 at blocks 14 to 19 in 17 of 20 pairs, and at no other block.",
    limitations: "Pairs of one-token countries only.",
    entries: [
      result("Lyon to Kyoto, block 16", "Lyon is a city in", "Japan", "Donor: Kyoto is a city in"),
      result("Lyon to Kyoto, block 4", "Lyon is a city in", "France"),
    ],
    comments: [{ body: "This matches what I see in another 7B model, shifted by two blocks." }],
  },
  {
    model: "gemma-2-2b-it",
    title: "Does the logit lens agree with the output earlier for frequent words?",
    question: "At which block does the lens first show the final token, by word frequency?",
    hypothesis: "Earlier for frequent words.",
    method: "Inspect 200 prompts at every second block; frequency bands from a public word list.",
    finding: "No clear difference: medians 18, 18 and 19 of 26 for the three bands.",
    limitations: "Soft-capped logits; the lens was read without the cap.",
    entries: [{ kind: "note", title: "A negative result", note: "Published to save others the weekend." }],
    comments: [{ body: "Thank you for publishing a null." }],
  },
];
