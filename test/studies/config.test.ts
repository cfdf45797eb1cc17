/** What a configuration says of the service. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Providers } from "../../src/studies/auth/providers.js";
import { readConfig } from "../../src/studies/config.js";
import { saying } from "../support/saying.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-config-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

test("a configuration says where it listens, what it trusts and who signs people in", () => {
  const file = join(folder, "studies.json");
  const read = (config: object, env: Record<string, string> = {}) => {
    writeFileSync(file, JSON.stringify({ origin: "https://s.example/", ...config }));
    return readConfig(file, env);
  };
  writeFileSync(join(folder, "cert.pem"), "C");
  writeFileSync(join(folder, "key.pem"), "K");
  const own = read({ tls: { certificate: "cert.pem", key: "key.pem" } });
  assert.equal(
    [own.origin, own.host, own.port, own.tls, own.trustedProxies, own.renewedTls?.()],
    ["https://s.example", "::", 8990, { cert: "C", key: "K" }, null, { cert: "C", key: "K" }],
  );
  assert.equal([own.database, own.disableFile], [join(folder, "studies.db"), join(folder, "api-disabled")]);
  const behind = read({ trusted_proxies: ["::1", "10.0.0.1"], disable_file: "off" });
  assert.equal(
    [behind.host, behind.tls, behind.renewedTls, behind.trustedProxies, behind.disableFile],
    ["127.0.0.1", null, undefined, ["::1", "10.0.0.1"], join(folder, "off")],
  );
  const proxies = { trusted_proxies: ["::1"] };
  assert.equal(
    [read({ ...proxies, host: "0.0.0.0", port: 1 }).host, read({ ...proxies, port: 1 }).port],
    ["0.0.0.0", 1],
  );
  for (const origin of ["s.example", "http://s.example", "https://s.example/a", "https://s.example//"])
    assert.throws(() => read({ ...proxies, origin }), /^origin must be /);
  const [oidc, github] = [{ issuer: "https://id.example", client_id: "o", label: "Us" }, { client_id: "g" }];
  const secrets = { TAPLINE_OIDC_CLIENT_SECRET: "x", TAPLINE_GITHUB_CLIENT_SECRET: "y" };
  const keys = (config: object, env: Record<string, string>) =>
    (read({ ...proxies, ...config }, env).providers("") as Providers).map(
      ({ key, label }) => `${key} ${label}`,
    );
  assert.equal(keys({ oidc, github }, secrets), ["oidc Us", "github GitHub"]);
  assert.equal(
    [keys({ oidc }, secrets), keys({ github }, secrets), keys({}, {})],
    [["oidc Us"], ["github GitHub"], []],
  );
  assert.throws(
    () => keys({ oidc }, {}),
    saying("The environment variable TAPLINE_OIDC_CLIENT_SECRET is not set."),
  );
  assert.throws(
    () => keys({ github }, { TAPLINE_GITHUB_CLIENT_SECRET: "" }),
    saying("The environment variable TAPLINE_GITHUB_CLIENT_SECRET is not set."),
  );
});

test.run();
