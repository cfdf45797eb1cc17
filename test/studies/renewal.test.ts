/** Certificate and key are read again while the service runs: new connections get the new ones, nobody is cut off. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { readConfig } from "../../src/studies/config.js";
import { developmentCertificate } from "../../src/studies/dev/certificate.js";
import { startStudies } from "../../src/studies/start.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-renewal-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
const fingerprint = (cert: string) => new X509Certificate(cert).fingerprint256;

async function connected(port: number): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, servername: "localhost", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  return socket;
}

/** The certificate that a new connection gets. */
async function presented(port: number): Promise<string> {
  const socket = await connected(port);
  const seen = socket.getPeerX509Certificate()?.fingerprint256 ?? "";
  socket.destroy();
  return seen;
}

async function ask(socket: TLSSocket): Promise<string> {
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  let text = "";
  // The whole response, however many parts it arrives in: the next one belongs to another request.
  while (!text.endsWith("}")) text += String(((await once(socket, "data")) as [Buffer])[0]);
  return text.slice(0, 15);
}

test("TLS files are reloaded without a restart, together or not at all", async () => {
  const [first, second] = await Promise.all([developmentCertificate(), developmentCertificate()]);
  writeFileSync(certFile, first.cert);
  writeFileSync(keyFile, first.key);
  writeFileSync(
    join(folder, "studies.json"),
    JSON.stringify({
      origin: "https://localhost:18444",
      host: "127.0.0.1",
      database: "studies.db",
      tls: { certificate: "cert.pem", key: "key.pem" },
    }),
  );
  const log: string[] = [];
  const config = readConfig(join(folder, "studies.json"), {});
  const running = await startStudies({ ...config, port: 0, log: (line) => log.push(line) });
  try {
    const { port } = running;
    const open = await connected(port);
    assert.is(await ask(open), "HTTP/1.1 200 OK");
    assert.is(await presented(port), fingerprint(first.cert));
    running.renewTls();
    assert.equal(log, [], "nothing has changed, nothing is said");

    // Half of the change: the key is not there yet.
    writeFileSync(certFile, second.cert);
    running.renewTls();
    assert.is(await presented(port), fingerprint(first.cert));
    assert.match(
      log.splice(0).join(),
      /^the TLS certificate is unusable: ERR_OSSL_X509_KEY_VALUES_MISMATCH$/,
    );

    writeFileSync(keyFile, second.key);
    running.renewTls();
    assert.is(await ask(open), "HTTP/1.1 200 OK", "who was connected stays so");
    assert.is(await presented(port), fingerprint(second.cert));
    assert.equal(log.splice(0), ["reloaded the TLS certificate"]);

    for (const spoil of [() => writeFileSync(certFile, "no certificate"), () => rmSync(keyFile)]) {
      spoil();
      running.renewTls();
      assert.is(await presented(port), fingerprint(second.cert));
      assert.match(log.splice(0).join(), /^the TLS certificate is unusable: /);
    }
    open.destroy();
  } finally {
    await running.close();
  }
});

test.run();
