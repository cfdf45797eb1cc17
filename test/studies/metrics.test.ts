/** `/metrics` and `/.well-known/security.txt`: access and contents. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Metrics } from "../../src/studies/metrics.js";
import { startDatabases } from "./support/databases.js";
import { startService } from "./support/service.js";

const databases = await startDatabases();
test.after(() => databases.close());
const token = "0123456789abcdef-metrics";

for (const database of databases.all) {
  test(`${database.name}: only the operator sees metrics, which hold no request text`, async () => {
    const service = await startService(database.fresh());
    try {
      const { running } = service;
      assert.is((await service.call("/metrics")).status, 404, "off by default");
      const headers = { Authorization: `Bearer ${token}` };
      assert.is((await service.call("/metrics", { headers })).status, 404);
      running.service.metricsToken = token;
      for (const wrong of [{}, { Authorization: "Bearer x" }, { Authorization: token }]) {
        const {
          status,
          headers: answered,
          text,
        } = await service.call("/metrics", { headers: wrong as never });
        assert.equal([status, answered["www-authenticate"]], [401, 'Bearer realm="tapline studies metrics"']);
        assert.not.match(text, "tapline_studies_");
      }
      const ada = await service.account("Ada");
      const { token: agent } = await service.token(ada.id);
      await service.api(agent, "/api/v1/studies?q=unmistakable");
      await service.api("x", "/api/v1/studies");
      await service.call("/unmistakable");
      const { status, text, headers: answered } = await service.call("/metrics", { headers });
      assert.equal(
        [status, answered["content-type"], answered["cache-control"]],
        [200, "text/plain; version=0.0.4; charset=utf-8", "no-store"],
      );
      for (const line of [
        'tapline_studies_requests_total{area="api",status="2xx"} 1',
        'tapline_studies_requests_total{area="api",status="4xx"} 1',
        'tapline_studies_requests_total{area="site",status="4xx"} 1',
        'tapline_studies_requests_total{area="machine",status="4xx"} 5',
        'tapline_studies_request_seconds_count{area="api"} 2',
        "tapline_studies_faults_total 0",
        "tapline_studies_database_reads 1",
        "tapline_studies_database_writes 1",
        "tapline_studies_api_disabled 0",
        "tapline_studies_studies 0",
        "tapline_studies_reports_open 0",
        "tapline_studies_appeals_open 0",
      ])
        assert.ok(text.split("\n").includes(line), `${line}\n${text}`);
      assert.not.match(text, "unmistakable");
      // Every sample belongs to a family that was declared before it.
      const families = new Set<string>();
      for (const line of text.trimEnd().split("\n")) {
        const declared = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
        if (declared) families.add(declared[1] as string);
        if (line.startsWith("#")) continue;
        const [, name = ""] = /^([a-z_]+)(?:\{[^}]*\})? -?[\d.e+-]+$/.exec(line) ?? [];
        assert.ok(families.has(name) || families.has(name.replace(/_(bucket|sum|count)$/, "")), line);
      }
    } finally {
      await service.close();
    }
  });
}

test("buckets are cumulative and end with the total", () => {
  const metrics = new Metrics();
  for (const seconds of [0.001, 0.005, 0.3, 60]) metrics.record("site", 200, seconds);
  const buckets = [...metrics.text([]).matchAll(/_bucket\{area="site",le="([^"]+)"\} (\d+)/g)];
  assert.equal(
    buckets.map(([, bound, count]) => `${bound} ${count}`),
    [
      ...["0.005 2", "0.01 2", "0.025 2", "0.05 2", "0.1 2", "0.25 2"],
      ...["0.5 3", "1 3", "2.5 3", "5 3", "10 3", "+Inf 4"],
    ],
  );
});

test("security.txt has the configured contact and a future date, or does not exist", async () => {
  const service = await startService(databases.all[0]!.fresh());
  try {
    const path = "/.well-known/security.txt";
    assert.is((await service.call(path)).status, 404);
    service.running.service.securityContact = "mailto:sec@s.example";
    const { status, text, headers } = await service.call(path);
    assert.equal([status, headers["content-type"]], [200, "text/plain; charset=utf-8"]);
    assert.match(text, /^Contact: mailto:sec@s\.example\nExpires: \d{4}-\d\d-\d\dT00:00:00\.000Z\n/);
    assert.ok(text.includes(`Canonical: ${service.running.origin}${path}\n`));
    // RFC 9116: less than a year from now.
    const expires = Date.parse(/Expires: (.+)/.exec(text)?.[1] as string);
    const days = (expires - Date.now()) / 86_400_000;
    assert.ok(days > 30 && days < 365, String(days));
  } finally {
    await service.close();
  }
});

test.run();
