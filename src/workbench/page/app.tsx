import { useLayoutEffect, useRef } from "preact/hooks";
import { percent } from "../../findings/numbers.js";
import { chatSettings } from "./chat-settings.js";
import { isGoing } from "./jobs.js";
import { follow, usePlace, type View, views } from "./router.js";
import { call, forget } from "./session.js";
import { changed, known, useTopic } from "./store.js";
import { ChatView } from "./views/chat.js";
import { FeaturesView } from "./views/features.js";
import { Button, Problem, useTrying } from "./views/form.js";
import { InspectView } from "./views/inspect.js";
import { JobsView } from "./views/jobs.js";
import { ModelsView } from "./views/models.js";
import { PatchView } from "./views/patch.js";
import { ProbeView } from "./views/probe.js";
import { SteerView } from "./views/steer.js";

const shown: Record<
  View,
  readonly [name: string, (props: { id: string | undefined }) => preact.JSX.Element]
> = {
  chat: ["Chat", ChatView],
  inspect: ["Inspect", InspectView],
  patch: ["Patch", PatchView],
  steer: ["Steer", SteerView],
  probe: ["Probe", ProbeView],
  features: ["Features", FeaturesView],
  jobs: ["Jobs", JobsView],
  models: ["Models", ModelsView],
};

export function App() {
  const { view, id } = usePlace();
  const [title, Shown] = shown[view];
  const shownBefore = useRef(view);
  // With the view itself, before another key can arrive: an effect behind the next picture would take the focus, and the
  // rest of what is being typed, from a field that one has gone to meanwhile.
  useLayoutEffect(() => {
    document.title = `${title} · tapline workbench`;
    // Who came by a link or a button, goes on in the view and not at the page's beginning.
    if (shownBefore.current !== view) document.getElementById("content")?.focus();
    shownBefore.current = view;
  }, [view]);
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="strip">
        <span class="brand">
          tap<span>line</span>
        </span>
        <Status />
      </header>
      <nav class="rail" aria-label="Views">
        {views.map((name) => (
          <a key={name} href={`/${name}`} onClick={follow} aria-current={name === view ? "page" : undefined}>
            {shown[name][0]}
          </a>
        ))}
      </nav>
      <main id="content" tabIndex={-1}>
        <Shown id={id} />
      </main>
    </>
  );
}

/** What is served, how both services are, and how much is going on. */
function Status() {
  useTopic("state");
  const { state, lost } = known;
  if (state === undefined) return null;
  const { server, lab, jobs, conversations, models } = state;
  const { switching } = models;
  const going = jobs.filter(({ status }) => isGoing(status)).length;
  const answering = conversations.filter(({ running }) => running).length;
  return (
    <>
      <span class="model">
        <bdi>{server.model ?? "no model"}</bdi>
        {switching !== null && switching.error === undefined && (
          <span class="soft">
            {" "}
            becomes <bdi>{switching.model}</bdi>: {switching.stage}
          </span>
        )}
        {server.n_layer !== null && (
          <span class="soft"> {`${server.n_layer} blocks, ${server.n_embd} wide`}</span>
        )}
      </span>
      <span class="states" role="status">
        {lost !== undefined ? (
          <span class="bad">{lost}</span>
        ) : (
          <>
            <span class={server.ok ? "soft" : "bad"}>server: {server.ok ? "ready" : server.sentence}</span>
            <span class={lab.ok ? "soft" : "bad"}>Lab: {lab.ok ? "ready" : lab.sentence}</span>
            {answering > 0 && <span>answering</span>}
          </>
        )}
      </span>
      <EditsOn />
      <a class="jobs" href="/jobs" onClick={follow}>
        {going === 1 ? "1 job running" : `${going} jobs running`}
      </a>
      <ThemeButton />
      <SignOut />
    </>
  );
}

function SignOut() {
  const { problem, trying } = useTrying();
  const signOut = async () => {
    await call("/api/sessions", { method: "DELETE" });
    forget();
    location.reload();
  };
  return (
    <>
      <Button class="quiet" onClick={() => void trying(signOut)}>
        Sign out everywhere
      </Button>
      <Problem sentence={problem} />
    </>
  );
}

/** What the next answers are changed by, and what the server says that it did to the last one. */
function EditsOn() {
  const { id } = usePlace();
  useTopic("settings");
  useTopic(`conversation ${id}`);
  const count = chatSettings.edits.filter(({ on }) => on).length;
  if (count === 0) return null;
  const last = id === undefined ? undefined : known.conversations.get(id)?.turns.at(-1);
  const done = last?.answers.flatMap(({ edits }) => edits ?? []) ?? [];
  const shares = done.map(({ mean_row_length: row, mean_change_length: change }) =>
    row !== undefined && change !== undefined && row > 0 ? change / row : undefined,
  );
  const nothing = done.some(({ mean_change_length: change }) => change === 0);
  const told = shares.flatMap((share) => (share === undefined ? [] : [percent(share)]));
  return (
    <a class={nothing ? "edits-on bad" : "edits-on"} href="/chat" onClick={follow}>
      edits on: {count}
      {nothing ? " (changes nothing)" : told.length > 0 && ` (${told.join(", ")} of a row)`}
    </a>
  );
}

const choices = [undefined, "light", "dark"] as const;

function ThemeButton() {
  useTopic("theme");
  const { dataset } = document.documentElement;
  const next = choices[(choices.indexOf(dataset.theme as "light") + 1) % choices.length];
  return (
    <Button
      class="quiet"
      onClick={() => {
        if (next === undefined) {
          delete dataset.theme;
          localStorage.removeItem("tapline-theme");
        } else {
          dataset.theme = next;
          localStorage.setItem("tapline-theme", next);
        }
        changed("theme");
      }}
    >
      Theme: {dataset.theme ?? "system"}
    </Button>
  );
}
