import { follow } from "../router.js";

/** A wrong address. */
export function MissingView() {
  return (
    <div class="page">
      <h1>Not found</h1>
      <p>
        There is no page at <code>{location.pathname}</code>. Part of the link may be missing, or it is from
        another version of the workbench.
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
