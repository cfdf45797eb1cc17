/** What stands here for whoever has no link. */
export function SignedOut({ sentence }: { sentence: string }) {
  return (
    <main class="alone">
      <h1>
        tap<span>line</span> workbench
      </h1>
      <p role="alert">{sentence}</p>
      <p>
        In a terminal: <code>tapline workbench --link</code>
      </p>
    </main>
  );
}
