import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { until } from "../../support/until.js";

/** A Slurm cluster of several nodes, all on this machine, of Debian's packages slurm-wlm and munge. */
export interface Cluster {
  /** What Slurm's commands need in their environment. */
  env: Record<string, string>;
  /** Kills a node's daemon and everything that it runs, as a machine that loses power does. */
  kill(node: number): void;
  /** Starts a node's daemon again. */
  restart(node: number): void;
  close(): Promise<void>;
}

/** Whether this machine can run one: only root may, with the packages at hand. */
export const canRunSlurm =
  process.getuid?.() === 0 &&
  ["slurmctld", "slurmd", "munged"].every((name) => spawnSync("which", [name]).status === 0);

/** Where a node's daemon runs: its address, and the prefix of its command, which ends with everything that it runs. */
export interface Place {
  host: string;
  runs: string[];
}

/**
 * @param folder readable by everybody, as munge requires of its socket's parents
 * @param places of the nodes, and the controller's address as they see it; by default all are on this machine
 */
export async function startCluster(
  folder: string,
  nodes: number,
  port: number,
  { controller, places }: { controller: string; places: Place[] } = { controller: "127.0.0.1", places: [] },
): Promise<Cluster> {
  const at = (name: string) => join(folder, name);
  for (const name of ["state", "spool", "log"]) mkdirSync(at(name));
  writeFileSync(at("munge.key"), randomBytes(1024), { mode: 0o400 });
  chmodSync(folder, 0o755);
  const host = hostname().split(".")[0] as string;
  const settings = [
    ...["ClusterName=test", `SlurmctldHost=${host}(${controller})`, `SlurmctldPort=${port}`],
    ...["AuthType=auth/munge", `AuthInfo=socket=${at("munge.sock")}`, "SlurmUser=root", "SlurmdUser=root"],
    ...[`StateSaveLocation=${at("state")}`, `SlurmdSpoolDir=${at("spool")}/%n`],
    ...[`SlurmctldPidFile=${at("slurmctld.pid")}`, `SlurmdPidFile=${at("slurmd")}-%n.pid`],
    ...[`SlurmctldLogFile=${at("log/slurmctld.log")}`, `SlurmdLogFile=${at("log")}/%n.log`],
    ...[
      "ProctrackType=proctrack/pgid",
      "TaskPlugin=task/none",
      "SelectType=select/linear",
      "MailProg=/bin/true",
    ],
    // A lost node is noticed within seconds, and may come back.
    ...[
      "ReturnToService=2",
      "SlurmdTimeout=6",
      "KillWait=2",
      "MinJobAge=5",
      "SlurmdParameters=config_overrides",
    ],
    ...["SchedulerParameters=batch_sched_delay=0,sched_interval=1"],
    ...Array.from(
      { length: nodes },
      (_, n) =>
        `NodeName=n${n} NodeHostname=${host} NodeAddr=${places[n]?.host ?? "127.0.0.1"} Port=${port + 1 + n} CPUs=1`,
    ),
    "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
  ];
  writeFileSync(at("slurm.conf"), `${settings.join("\n")}\n`);
  const env = { SLURM_CONF: at("slurm.conf") };
  const daemons: ChildProcess[] = [];
  const start = (command: string, args: string[]) => {
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: "ignore" });
    daemons.push(child);
    return child;
  };
  const munge = ["key-file=munge.key", "socket=munge.sock", "pid-file=munge.pid", "log-file=munge.log"];
  start("munged", [
    ...["--force", "--foreground", `--seed-file=${at("munge.seed")}`],
    ...munge.map((option) => `--${option.replace("=", `=${folder}/`)}`),
  ]);
  start("slurmctld", ["-D", "-f", at("slurm.conf")]);
  const startNode = (node: number) => {
    const [command = "", ...words] = [...(places[node]?.runs ?? []), "slurmd"];
    return start(command, [...words, "-D", "-f", at("slurm.conf"), "-N", `n${node}`]);
  };
  const running = Array.from({ length: nodes }, (_, node) => startNode(node));
  const idle = () => {
    const said = spawnSync("sinfo", ["--noheader", "--format=%T %D"], { env: { ...process.env, ...env } });
    return String(said.stdout).trim() === `idle ${nodes}`;
  };
  await until(idle);
  return {
    env,
    kill(node) {
      running[node]?.kill("SIGKILL");
      // Its tasks and, first, their parents, which would report a killed task.
      const processes = execFileSync("ps", ["-eo", "ppid,pid"], { encoding: "utf8" }).split("\n").slice(1);
      const tasks = processes
        .map((line) => line.trim().split(/\s+/) as [string, string])
        .filter(([, pid = ""]) => environmentOf(pid).includes(`SLURMD_NODENAME=n${node}`));
      const own = new Set(tasks.map(([, pid]) => pid));
      for (const [parent] of tasks) if (!own.has(parent)) killNow(parent);
      for (const pid of own) killNow(pid);
    },
    restart(node) {
      running[node] = startNode(node);
    },
    async close() {
      for (const daemon of daemons.reverse()) daemon.kill("SIGTERM");
      await Promise.all(
        daemons.map((daemon) =>
          daemon.exitCode !== null || daemon.signalCode !== null
            ? undefined
            : new Promise((resolve) => daemon.once("exit", resolve)),
        ),
      );
    },
  };
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return [];
  }
}

function killNow(pid: string): void {
  try {
    process.kill(Number(pid), "SIGKILL");
  } catch {
    // it has ended
  }
}
