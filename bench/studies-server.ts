/** The service in a process of its own, as the benchmark loads it. Argument: the database. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { developmentCertificate } from "../src/studies/dev/certificate.js";
import { startStudies } from "../src/studies/start.js";

const tls = await developmentCertificate();
const running = await startStudies({
  origin: "https://localhost:0",
  host: "127.0.0.1",
  port: 0,
  database: process.argv[2] as string,
  tls,
  trustedProxies: null,
  disableFile: join(tmpdir(), "tapline-bench-disabled"),
  providers: () => [],
});
process.on("message", () => process.send?.(process.memoryUsage.rss()));
process.on("disconnect", () => process.exit());
process.send?.({ port: running.port, cert: tls.cert });
