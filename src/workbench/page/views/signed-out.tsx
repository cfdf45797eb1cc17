/** The page for a browser without a session. */
export function SignedOut({ sentence }: { sentence: string }) {
  return (
    <main class="alone">
      <h1>
        tap<span>line</span> workbench
      </h1>
      <p role="alert">{sentence}</p>
      <p>
        Get a new link: <code>tapline workbench --link</code>
      </p>
    </main>
  );
}
