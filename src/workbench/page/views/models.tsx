import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { count, parametersText } from "../../../findings/numbers.js";
import { ago, bytes, duration } from "../../../terminal/spans.js";
import { shellWord } from "../../../text/shell.js";
import type { DownloadStatus, LocalModel, ModelMemory, ModelOffers, ModelsHere } from "../../wire.js";
import { select, usePlace } from "../router.js";
import { call, post } from "../session.js";
import { known, useTopic, useWork } from "../store.js";
import { CommandCode } from "./command-code.js";
import { Button, Form, Problem, useDraft, useTrying } from "./form.js";
import { Table } from "./table.js";

/** The form for the hub, kept while other views are open. */
const draft = { name: "" };

/** The models on this machine, the served model, downloads, and the hub. */
export function ModelsView() {
  useTopic("state");
  const { here, problem } = useHere();
  const { downloads, switching } = known.state?.models ?? { downloads: [], switching: null };
  return (
    <div class="page">
      <h1>Models</h1>
      <p class="soft">
        One model is served at a time. Experiments load their own copy, so a running one is not affected when
        you switch models.
      </p>
      <Problem sentence={problem} />
      {switching !== null && (
        <section class="card" aria-label="Switching" role="status">
          {switching.error === undefined ? (
            <p class="row">
              <span>
                Switching to <bdi>{switching.model}</bdi>: {switching.stage}…
              </span>
              <progress value={switching.fraction} max={1} aria-label={switching.stage} />
            </p>
          ) : (
            <p class="problem">
              Couldn't switch to <bdi>{switching.model}</bdi>: {switching.error}
            </p>
          )}
        </section>
      )}
      {here === undefined ? <p class="soft">Loading models…</p> : <Here here={here} />}
      {downloads.length > 0 && (
        <section class="card" aria-label="Downloads">
          <h2>Downloads</h2>
          <ul class="plain">
            {downloads.map((download) => (
              <li key={download.number}>
                <OneDownload download={download} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <OpenFile />
      <Hub />
    </div>
  );
}

/** The models on this machine, loaded again after every change. */
function useHere(): { here: ModelsHere | undefined; problem: string | undefined } {
  const [here, set] = useState<ModelsHere>();
  const { problem, trying } = useTrying();
  const changes = known.state?.models.changes;
  const served = known.state?.server.model;
  useWork(
    [changes, served],
    (isOver) =>
      void trying(async () => {
        const read = await call<ModelsHere>("/api/models");
        if (!isOver()) set(read);
      }),
  );
  return { here, problem };
}

const titlesHere = [
  ...["Model", { hidden: "actions" }, "Details", { number: "Context" }, { number: "Size" }],
  ...["Memory needed (default context)", "Last used"],
];

function Here({ here }: { here: ModelsHere }) {
  const { models, unfinished, memory, diskFree, fixed, folder } = here;
  const fits = useFits(models);
  const { problem, trying } = useTrying();
  const list = useRef<HTMLDivElement>(null);
  return (
    <section class="card" aria-label="On this machine">
      <h2>On this machine</h2>
      <p>
        {bytes(memory.free)} of {bytes(memory.total)} memory free
        {diskFree !== null && `, ${bytes(diskFree)} free on the disk with the downloads`}.
      </p>
      {fixed !== null && <p class="soft">{fixed}</p>}
      <Table label="Models on this machine" titles={titlesHere} class="roomy" box={list}>
        {models.map((model) => (
          <ModelRow
            key={model.id}
            model={model}
            fits={fits.get(model.id)}
            fixed={fixed}
            act={(path) => trying(() => post(path, { model: model.id }))}
            onGone={() => list.current?.focus()}
          />
        ))}
      </Table>
      <Problem sentence={problem} />
      {unfinished.map(({ repository, bytes: size, underWay }) => (
        <p class="soft" key={`${repository} ${size}`}>
          {underWay ? (
            <>
              Downloading <bdi>{repository}</bdi>: {bytes(size)} so far.
            </>
          ) : (
            <>
              Unfinished download of <bdi>{repository}</bdi> ({bytes(size)}). Download the same model again to
              resume it.
            </>
          )}
        </p>
      ))}
      <p class="soft">
        Downloads are stored in <code>{folder}</code>, the hub's shared cache.
      </p>
      <CommandCode lines={["tapline models", "tapline workbench --model MODEL", "tapline rm MODEL"]} />
    </section>
  );
}

/** The memory that each model needs, one request after the other. */
function useFits(models: LocalModel[]): Map<string, ModelMemory | string> {
  const [fits, set] = useState(new Map<string, ModelMemory | string>());
  useWork([models], async (isOver) => {
    for (const { id } of models) {
      const memory = await post<{ memory: ModelMemory | null }>("/api/models/fits", { model: id }).then(
        (found) => found.memory,
        (error: Error) => error.message,
      );
      if (isOver()) return;
      if (memory !== null) set((before) => new Map(before).set(id, memory));
    }
  });
  return fits;
}

function ModelRow({
  model: { id, from, bytes: size, header, lastUsed, served },
  fits,
  fixed,
  act,
  onGone,
}: {
  model: LocalModel;
  fits: ModelMemory | string | undefined;
  fixed: string | null;
  act: (path: string) => Promise<unknown>;
  /** The row with the focus was deleted. */
  onGone: () => void;
}) {
  const [sure, setSure] = useState(false);
  const cancel = useRef<HTMLButtonElement>(null);
  // The pressed button is gone; move the focus to the harmless one.
  useLayoutEffect(() => {
    if (sure) cancel.current?.focus();
  }, [sure]);
  const { switching } = known.state?.models ?? { switching: null };
  const isSwitching = switching !== null && switching.error === undefined;
  const tooLarge = typeof fits === "object" && fits.fits === "no";
  return (
    <tr aria-current={served ? "true" : undefined}>
      <th scope="row">
        <bdi>{id}</bdi>
        {from === "embedded" && <span class="soft"> included with tapline</span>}
      </th>
      <td>
        <span class="row">
          {served ? (
            <strong>served</strong>
          ) : (
            <Button
              disabled={fixed !== null || isSwitching || tooLarge}
              aria-label={`Serve ${id}`}
              onClick={() => void act("/api/models/serve")}
            >
              Serve
            </Button>
          )}
          {from === "cache" && !sure && (
            <Button
              class="quiet"
              disabled={served}
              aria-label={served ? `Delete ${id} (not while it is served)` : `Delete ${id}`}
              onClick={() => setSure(true)}
            >
              Delete
            </Button>
          )}
          {sure && (
            <>
              <Button
                aria-label={`Confirm deleting ${id}`}
                onClick={() =>
                  void act("/api/models/remove").then(() => {
                    setSure(false);
                    onGone();
                  })
                }
              >
                Delete (frees {bytes(size)})
              </Button>
              <button
                type="button"
                class="quiet"
                ref={cancel}
                aria-label={`Cancel deleting ${id}`}
                onClick={() => setSure(false)}
              >
                Cancel
              </button>
            </>
          )}
        </span>
      </td>
      <td>{header === null ? "unreadable header" : <bdi>{wordsOf(header)}</bdi>}</td>
      <td class="number">{header?.context ?? ""}</td>
      <td class="number">{bytes(size)}</td>
      <td>
        <Memory memory={fits} />
      </td>
      <td>{lastUsed === null ? "" : ago(lastUsed)}</td>
    </tr>
  );
}

function wordsOf({
  architecture,
  parameters,
  quantization,
  blocks,
  hidden,
}: NonNullable<LocalModel["header"]>) {
  return [
    architecture,
    parametersText(parameters),
    quantization,
    blocks === null ? null : `${blocks} layers`,
    hidden === null ? null : `width ${hidden}`,
  ]
    .filter((part) => part !== null && part !== "")
    .join(", ");
}

/** Whether a model fits into memory, never by colour alone. */
function Memory({ memory }: { memory: ModelMemory | string | undefined }) {
  if (memory === undefined) return <span class="soft">…</span>;
  if (typeof memory === "string") return <span class="problem">{memory}</span>;
  if (memory.fits === "unknown") return <span class="problem">{memory.sentence}</span>;
  const word = { yes: "fits", tight: "tight fit", no: "does not fit" }[memory.fits];
  return (
    <>
      {bytes(memory.needed)}, {memory.fits === "yes" ? word : <strong>{word}</strong>}
      {memory.sentence !== "" && <p class="soft">{memory.sentence}</p>}
    </>
  );
}

function OneDownload({ download }: { download: DownloadStatus }) {
  const { number, model, state, file, done, total, speed, error } = download;
  const left = speed > 0 && done < total ? `, ${duration((total - done) / speed)} left` : "";
  return (
    <div class="row">
      <bdi>{model}</bdi>
      {state === "running" ? (
        <>
          {total > 0 ? (
            <>
              <progress value={done} max={total} aria-label={`Download of ${model}`} />
              <span class="number">
                {bytes(done)} of {bytes(total)}
                {speed > 0 && `, ${bytes(speed)}/s`}
                {left}
              </span>
              <bdi class="soft">{file}</bdi>
            </>
          ) : (
            <progress aria-label={`Download of ${model}`} />
          )}
          <Button
            aria-label={`Stop the download of ${model}`}
            onClick={() => void post(`/api/models/downloads/${number}/stop`).catch(() => {})}
          >
            Stop
          </Button>
        </>
      ) : (
        <span class={state === "failed" ? "problem" : ""}>
          {state === "done" && `downloaded: ${bytes(total)}`}
          {state === "stopped" && `stopped at ${bytes(done)}; download again to resume`}
          {state === "failed" && error}
        </span>
      )}
    </div>
  );
}

/** Adds a file of this machine to the list. */
function OpenFile() {
  const [path, setPath] = useState("");
  const [opened, setOpened] = useState<string>();
  const { problem, trying } = useTrying();
  const open = () =>
    trying(async () => {
      setOpened(undefined);
      const { id } = await post<LocalModel>("/api/models/files", { model: path.trim() });
      setPath("");
      setOpened(id);
    });
  return (
    <Form onSubmit={open} problem={problem}>
      <h2>From a file</h2>
      <label class="field">
        Path <span class="soft">of a .gguf file on this machine</span>
        <input
          class="whole"
          value={path}
          placeholder="/models/name.gguf or ~/models/name.gguf"
          onInput={(event) => setPath(event.currentTarget.value)}
        />
      </label>
      <p class="row">
        <button type="submit" class="main" disabled={path.trim() === ""}>
          Open
        </button>
        {opened !== undefined && (
          <span role="status">
            <bdi>{opened}</bdi> is in the list above.
          </span>
        )}
      </p>
    </Form>
  );
}

/** The files of a repository on the hub, and which of them would fit. */
function Hub() {
  const { query } = usePlace();
  const [offers, setOffers] = useState<ModelOffers>();
  const [looking, setLooking] = useState(false);
  const { problem, trying } = useTrying();
  const { set } = useDraft(draft);
  useEffect(() => {
    // Fill the name from the address, but only ask the hub on request.
    const of = query.get("of");
    if (of !== null && draft.name === "") set({ name: of });
  }, []);
  const name = draft.name.trim();
  const look = () =>
    trying(async () => {
      setLooking(true);
      setOffers(undefined);
      select({ of: name });
      await post<ModelOffers>("/api/models/offers", { model: name })
        .then(setOffers)
        .finally(() => setLooking(false));
    });
  const download = (model: string) => trying(() => post("/api/models/downloads", { model }));
  return (
    <>
      <Form onSubmit={look} problem={problem}>
        <h2>From the hub</h2>
        <label class="field">
          Model <span class="soft">owner/name, owner/name:Q8_0 or owner/name/file.gguf</span>
          <input
            class="whole"
            value={draft.name}
            placeholder="ggml-org/gemma-3-1b-it-GGUF"
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
        </label>
        <p class="row">
          <button type="submit" class="main" disabled={name === "" || looking}>
            {looking ? "Loading…" : "Browse files"}
          </button>
          <Button disabled={name === ""} onClick={() => void download(name)}>
            Download
          </Button>
        </p>
        <CommandCode lines={[`tapline pull ${name === "" ? "owner/name" : shellWord(name)}`]} />
      </Form>
      {offers !== undefined && (
        <section class="card" aria-label={`Files of ${offers.repository}`}>
          <h2>
            <bdi>{offers.repository}</bdi>
          </h2>
          {offers.offers.length === 0 && <p>No .gguf files.</p>}
          <p class="soft">Memory of the weights only; context and buffers need more.</p>
          <Table label="Files" titles={["File", { hidden: "actions" }, "Memory (weights)"]} class="roomy">
            {offers.offers.map(({ id, file, parts, here, memory }) => (
              <tr key={id}>
                <th scope="row">
                  <bdi>{file}</bdi>
                  {parts > 1 && <span class="soft"> and {count(parts - 1, "more part")}</span>}
                </th>
                <td>
                  {here ? (
                    "downloaded"
                  ) : (
                    <Button aria-label={`Download ${id}`} onClick={() => void download(id)}>
                      Download
                    </Button>
                  )}
                </td>
                <td>
                  <Memory memory={memory} />
                </td>
              </tr>
            ))}
          </Table>
        </section>
      )}
    </>
  );
}
