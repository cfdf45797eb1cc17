import { follow, go, place } from "../router.js";
import { call, unlessGone } from "../session.js";
import { known } from "../store.js";
import { Button, Problem, useTrying } from "./form.js";

/** All saved conversations. */
export function ConversationList({ shown }: { shown: string | undefined }) {
  const list = known.state?.conversations ?? [];
  const { problem, trying } = useTrying();
  return (
    <nav class="conversations" aria-label="Conversations">
      <a class="new" href="/chat" onClick={follow} aria-current={shown === undefined ? "page" : undefined}>
        New conversation
      </a>
      <ul class="plain">
        {list.map(({ id, title, from, running }) => (
          <li key={id}>
            <a href={`/chat/${id}`} onClick={follow} aria-current={id === shown ? "page" : undefined}>
              {from !== undefined && (
                <>
                  <span aria-hidden="true">↳ </span>
                  <span class="visually-hidden">Branch: </span>
                </>
              )}
              <bdi>{title}</bdi>
              {running && <span class="soft"> generating…</span>}
            </a>
            <Button
              class="quiet"
              aria-label={`Delete “${title}”`}
              disabled={running}
              onClick={() => {
                if (!confirm(`Delete the conversation “${title}”?`)) return;
                void trying(async () => {
                  await call(`/api/conversations/${id}`, { method: "DELETE" }).catch(unlessGone);
                  known.conversations.delete(id);
                  if (place().id === id) go("/chat");
                });
              }}
            >
              ×
            </Button>
          </li>
        ))}
      </ul>
      <Problem sentence={problem} />
    </nav>
  );
}
