import { copyFile, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Lab, TaplineError } from "../client/index.js";
import { answers, greetingMs, usualLab } from "./service-address.js";

/** For a response of a temporary Lab. */
const patienceMs = 3_600_000;

/** The Lab that runs an experiment. */
export interface LabSession {
  lab: Lab;
  url: string;
  /** Whether it is temporary: then nothing remains when it ends. */
  own: boolean;
  /** Copies a job's log to a file if this Lab is temporary. @returns whether it was copied */
  keepLog(job: string, destination: string): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * The named Lab, or the one at the default port, or a temporary one, which ends together with its data when the session
 * is closed.
 * @param named an origin, or `new` to always start a temporary Lab
 * @param options.emptyLibrary gives a temporary Lab an empty library instead of the user's
 * @param options.unlimited lifts a temporary Lab's limit on the duration of a job
 */
export async function openLab(
  named: string | undefined,
  onStart: () => void,
  { emptyLibrary = false, unlimited = false }: { emptyLibrary?: boolean; unlimited?: boolean } = {},
): Promise<LabSession> {
  if (named !== undefined && named !== "new") {
    const lab = new Lab(named);
    await lab.health();
    return running(lab, named);
  }
  if (named === undefined && (await isLab(usualLab))) return running(new Lab(usualLab), usualLab);
  onStart();
  return startOwn(emptyLibrary, unlimited);
}

function running(lab: Lab, url: string): LabSession {
  return { lab, url, own: false, keepLog: async () => false, close: async () => {} };
}

/** Whether a Lab is at an address. */
export function isLab(url: string): Promise<boolean> {
  return answers(async () => (await new Lab(url, { timeoutMs: greetingMs }).health()).api_version === 1);
}

async function startOwn(emptyLibrary: boolean, unlimited: boolean): Promise<LabSession> {
  const [{ longestDeadlineMs, startLab, taplineHome }, { backendInfo }] = await Promise.all([
    import("../lab/index.js"),
    import("../native/index.js"),
  ]);
  const home = await mkdtemp(join(tmpdir(), "tapline-lab-"));
  const removeHome = () => rm(home, { recursive: true, force: true });
  try {
    // Saved items outlive the temporary Lab.
    const library = emptyLibrary ? home : taplineHome();
    const service = await startLab({
      ...{ port: 0, home, library, backend: backendInfo().backend },
      ...(unlimited && { deadlineMs: longestDeadlineMs }),
    });
    return {
      // Part of this process: its silence only means that the machine is busy.
      lab: new Lab(service.url, { timeoutMs: patienceMs }),
      url: service.url,
      own: true,
      async keepLog(job, destination) {
        const log = join(service.folder, job, "worker.log");
        const { size } = await stat(log).catch(() => ({ size: 0 }));
        if (size === 0) return false;
        return copyFile(log, destination).then(
          () => true,
          () => false, // the job's own error matters more than a missing log
        );
      },
      async close() {
        await service.close();
        await removeHome();
      },
    };
  } catch (error) {
    await removeHome();
    throw error;
  }
}

/** Finds a job by its id, by a unique prefix of it, or the newest one by `last`. */
export async function findJob(lab: Lab, name: string): Promise<string> {
  if (/^[0-9a-f]{32}$/.test(name)) return name;
  const jobs = await lab.jobs();
  if (name === "last") {
    const [newest] = jobs;
    if (newest === undefined) throw new TaplineError("The Lab has no jobs yet.");
    return newest.id;
  }
  const found = /^[0-9a-f]{4,}$/.test(name) ? jobs.filter(({ id }) => id.startsWith(name)) : [];
  if (found.length === 1) return (found[0] as { id: string }).id;
  throw new TaplineError(
    found.length > 1
      ? `${found.length} jobs start with ${name}.`
      : `There is no job ${name}; use its id, at least four characters of it, or last.`,
  );
}
