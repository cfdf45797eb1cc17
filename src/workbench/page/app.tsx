import { useLayoutEffect, useRef } from "preact/hooks";
import { count } from "../../findings/numbers.js";
import { chatSettings } from "./chat-settings.js";
import { isActive } from "./jobs.js";
import { follow, missing, usePlace, type View, views } from "./router.js";
import { call, forget } from "./session.js";
import { changed, known, useTopic } from "./store.js";
import { ChatView } from "./views/chat.js";
import { CompareView } from "./views/compare.js";
import { DriftView } from "./views/drift.js";
import { FeaturesView } from "./views/features.js";
import { Button, Problem, useTrying } from "./views/form.js";
import { GraphView } from "./views/graph.js";
import { InspectView } from "./views/inspect.js";
import { JobsView } from "./views/jobs.js";
import { Menu } from "./views/menu.js";
import { MissingView } from "./views/missing.js";
import { ModelsView } from "./views/models.js";
import { PatchView } from "./views/patch.js";
import { ProbeView } from "./views/probe.js";
import { RemovedEdits } from "./views/removed-edits.js";
import { SessionView } from "./views/session.js";
import { SteerView } from "./views/steer.js";

const shown: Record<
  View,
  readonly [name: string, (props: { id: string | undefined }) => preact.JSX.Element]
> = {
  chat: ["Chat", ChatView],
  inspect: ["Inspect", InspectView],
  compare: ["Compare", CompareView],
  patch: ["Patch", PatchView],
  graph: ["Graph", GraphView],
  steer: ["Steer", SteerView],
  probe: ["Probe", ProbeView],
  features: ["Features", FeaturesView],
  drift: ["Drift", DriftView],
  jobs: ["Jobs", JobsView],
  session: ["Session", SessionView],
  models: ["Models", ModelsView],
};

export function App() {
  const { view, id } = usePlace();
  const [title, Shown] = view === missing ? (["Not found", MissingView] as const) : shown[view];
  const shownBefore = useRef(view);
  // A layout effect: a later one would take the focus from a field that the user has moved to in the meantime.
  useLayoutEffect(() => {
    document.title = `${title} · tapline workbench`;
    // After a link or a button, keyboard users continue in the view instead of at the top of the page.
    if (shownBefore.current !== view) document.getElementById("content")?.focus();
    shownBefore.current = view;
  }, [view]);
  return (
    <>
      <a class="skip" href="#content">
        Skip to content
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

/** The served model, what is running, and a service that is not ready. */
function Status() {
  useTopic("state");
  const { state, lost } = known;
  if (state === undefined) return null;
  const { server, lab, jobs, conversations, models } = state;
  const { switching } = models;
  const active = jobs.filter(({ status }) => isActive(status)).length;
  const answering = conversations.filter(({ running }) => running).length;
  return (
    <>
      <span class="model">
        <bdi>{server.model ?? "no model"}</bdi>
        {switching !== null && switching.error === undefined && (
          <span class="soft">
            {" "}
            switching to <bdi>{switching.model}</bdi>: {switching.stage}…
          </span>
        )}
        {server.n_layer !== null && (
          <span class="soft"> {`${server.n_layer} layers, width ${server.n_embd}`}</span>
        )}
      </span>
      <span class="states" role="status">
        {lost !== undefined ? (
          <span class="bad">{lost}</span>
        ) : (
          <>
            {!server.ok && <span class="bad">Server: {server.sentence}</span>}
            {!lab.ok && <span class="bad">Lab: {lab.sentence}</span>}
            {answering > 0 && <span>generating</span>}
          </>
        )}
      </span>
      <EditsOn />
      <RemovedEdits />
      {active > 0 && (
        <a class="jobs" href="/jobs" onClick={follow}>
          {count(active, "job")} running
        </a>
      )}
      <Menu label="Settings">
        <div class="stacked">
          <ThemeButton />
          <SignOut />
        </div>
      </Menu>
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

/** The profile and the interventions of the next answers, and whether they had no effect on the last one. */
function EditsOn() {
  const { id } = usePlace();
  useTopic("settings");
  useTopic(`conversation ${id}`);
  const active = chatSettings.edits.filter(({ on }) => on).length;
  const { profile } = chatSettings;
  if (active === 0 && profile === "") return null;
  const last = id === undefined ? undefined : known.conversations.get(id)?.turns.at(-1);
  const applied = last?.answers.flatMap(({ edits }) => edits ?? []) ?? [];
  const ineffective = applied.some(({ mean_change_length: change }) => change === 0);
  return (
    <a class={ineffective ? "edits-on bad" : "edits-on"} href="/chat" onClick={follow}>
      {profile !== "" && `profile ${profile}`}
      {profile !== "" && active > 0 && ", "}
      {active > 0 && `${count(active, "intervention")} active in Chat`}
      {ineffective && ", no effect"}
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
