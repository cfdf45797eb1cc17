/** Measures in its own process. */
import { serveTask } from "../native/task-process.js";
import { type Line, runTask, type Task } from "./measure.js";

for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {}); // the command handles them
serveTask<Task, { line: Line }>((task, send) => runTask(task, (line) => send({ line })));
