import { follow } from "../router.js";

/** A wrong address. */
export function MissingView() {
  return (
    <div class="page">
      <h1>Not found</h1>
      <p>
        There is no page at <code>{location.pathname}</code>. It may be a link with a part missing, or one to
        a thing that another version of the workbench shows.
      </p>
      <p>
        <a href="/chat" onClick={follow}>
          Go to the chat
        </a>
        ,{" "}
        <a href="/jobs" onClick={follow}>
          find a job
        </a>
        , or{" "}
        <a href="/session" onClick={follow}>
          see what ran in this session
        </a>
        .
      </p>
    </div>
  );
}
