import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { addMachine, type Machine } from "../../rpc/support/machines.js";
import { type Cluster, canRunSlurm, type Place, startCluster } from "../../stress/slurm/cluster.js";
import { program } from "../../support/program.js";
import { until } from "../../support/until.js";

const tapline = [...program];
const port = 17_400 + (process.pid % 50) * 4;

/**
 * An extraction on a Slurm cluster of three nodes, each with its own network, processes and temporary disk; the data and
 * the results are on a disk that all see. One node loses its power in the middle, one its network until Slurm has given
 * it up, while its part keeps computing, and the third one's disk is full. The merged files are those of one run, byte for byte.
 */
export async function network(): Promise<{ outcome: "passed" | "failed"; detail: string }> {
  if (!canRunSlurm) return { outcome: "failed", detail: "It needs root, slurm-wlm and munge." };
  const folder = mkdtempSync(join(tmpdir(), "tapline-network-"));
  const machines: Machine[] = [];
  let cluster: Cluster | undefined;
  const seen: string[] = [];
  try {
    const at = (name: string) => join(folder, name);
    for (const name of ["tmp", "home"]) mkdirSync(at(name));
    writeFileSync(at("full"), "");
    for (const number of [0, 1, 2]) machines.push(addMachine(number));
    const controller = before((machines[0] as Machine).host);
    cluster = await startCluster(folder, 3, port, {
      controller,
      places: machines.map((machine, node) => placeOf(machine, node === 2, folder)),
    });
    await disturbed(folder, machines, cluster, seen);
    const [merged, whole] = [at("rows"), at("whole")].map(contents);
    if (merged !== whole) throw new Error("the merged files differ from those of one run");
    return { outcome: "passed", detail: [...seen, "The files are equal."].join("\n") };
  } catch (error) {
    return { outcome: "failed", detail: [...seen, String((error as Error).stack)].join("\n") };
  } finally {
    for (const node of machines.keys()) cluster?.kill(node); // unshare ignores SIGTERM
    await cluster?.close();
    for (const machine of machines) machine.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The address of this machine's end of a cable. */
const before = (host: string) => host.replace(/\d+$/, (last) => String(Number(last) - 1));

/** A node's daemon in its own namespaces of networks, processes and mounts; `isFull` while the file `full` exists. */
function placeOf({ host, runs }: Machine, isFull: boolean, folder: string): Place {
  const temporary = join(folder, "tmp");
  execFileSync(runs[0] as string, [...runs.slice(1), "ip", "route", "add", "default", "via", before(host)]);
  const script = [
    `mount -t tmpfs -o size=64m none ${temporary}`,
    ...(isFull
      ? [
          `cat /dev/zero >${temporary}/filler 2>/dev/null`,
          `while [ -e ${folder}/full ]; do sleep 0.2; done && rm ${temporary}/filler &`,
        ]
      : []),
    'exec "$@"',
  ].join("\n");
  const unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
  // `ip netns exec` would also mount /sys again, without the control groups that slurmd requires.
  const enter = ["nsenter", `--net=/run/netns/${runs.at(-1)}`];
  return { host, runs: [...enter, ...unshare, "bash", "-c", script, "node"] };
}

async function disturbed(
  folder: string,
  [, second]: readonly Machine[],
  cluster: Cluster,
  seen: string[],
): Promise<void> {
  const at = (name: string) => join(folder, name);
  const env = { ...process.env, ...cluster.env, TAPLINE_HOME: at("home"), TMPDIR: at("tmp") };
  const words = "the capital of France is Paris and that of Japan is Tokyo".split(" ");
  const text = (n: number) =>
    Array.from({ length: 40 }, (_, i) => words[(n * 7 + i * (1 + (n % 5))) % words.length]);
  writeFileSync(
    at("texts.txt"),
    Array.from({ length: 2400 }, (_, n) => `${n} ${text(n).join(" ")}`).join("\n"),
  );
  const extract = [
    ...[...tapline, "extract", "--data", at("texts.txt"), "--layers", "2,5", "--shard-tokens", "2048"],
    ...["--quiet", "--json"],
  ];
  execFileSync(process.execPath, [...extract, "--lab", "new", "--out", at("whole")], { env, stdio: "pipe" });

  const child = spawn(
    process.execPath,
    [...extract, "--out", at("rows"), "--submit", "slurm", "--parts", "6", "--workers", "6"],
    { env, stdio: ["ignore", "pipe", "pipe"] },
  );
  let said = "";
  child.stdout.on("data", (chunk) => (said += chunk));
  child.stderr.on("data", (chunk) => (said += chunk));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const parts = at("rows/parts");
  const names = () => (existsSync(parts) ? readdirSync(parts) : []);
  const stateOf = (node: number) =>
    String(spawnSync("sinfo", ["--noheader", `--nodes=n${node}`, "--format=%T"], { env }).stdout).trim();
  const busy = (node: number) =>
    String(
      spawnSync("squeue", ["--noheader", "--states=R", `--nodelist=n${node}`, "--format=%K"], { env }).stdout,
    ).trim();

  await until(
    () => names().some((name) => name.endsWith(".safetensors")) && busy(0) !== "" && busy(1) !== "",
  );
  seen.push(`Node 0 loses its power with part ${busy(0)}, node 1 its network with part ${busy(1)}.`);
  cluster.kill(0);
  (second as Machine).cut();
  const full = await until(() =>
    names()
      .filter((name) => name.endsWith(".log"))
      .map((name) => readFileSync(join(parts, name), "utf8"))
      .find((log) => /ENOSPC|no space|disk is full/i.test(log)),
  );
  seen.push(`Node 2: ${full.trim().split("\n").at(-1)}`);
  rmSync(at("full"));
  await until(() => /down/i.test(stateOf(0)) && /down/i.test(stateOf(1)));
  seen.push("Slurm has given up nodes 0 and 1.");
  cluster.restart(0);
  await sleep(5000);
  (second as Machine).reconnect();
  seen.push("They are back.");
  const code = await ended;
  if (code !== 0) throw new Error(`The submission ended with code ${code}: ${said.slice(-2000)}`);
}

/** All files of a folder, as one text. */
const contents = (path: string) =>
  readdirSync(path)
    .sort()
    .map((name) => `${name} ${readFileSync(join(path, name)).toString("base64")}`)
    .join("\n");
