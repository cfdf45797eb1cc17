/**
 * The service in a separate process, as the benchmark loads it and as people run it: compiled, since compiling
 * sources on the way takes 60 MB. Arguments: the database, then where dev/certificate and start are.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [database, ...modules] = process.argv.slice(2);
const [{ developmentCertificate }, { startStudies }] = await Promise.all(
  modules.map((path) => import(pathToFileURL(path).href)),
);
const tls = await developmentCertificate();
const running = await startStudies({
  origin: "https://localhost:0",
  host: "127.0.0.1",
  port: 0,
  database,
  tls,
  trustedProxies: null,
  disableFile: join(tmpdir(), "tapline-bench-disabled"),
  providers: () => [],
});
process.on("message", () => process.send?.(process.memoryUsage.rss()));
process.on("disconnect", () => process.exit());
process.send?.({ port: running.port, cert: tls.cert });
