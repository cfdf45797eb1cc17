/** Checks one model in its own process. */
import { serveTask } from "../native/task-process.js";
import { checkModel, type Task } from "./check-model.js";
import type { Found } from "./found.js";

serveTask<Task, { found: Found }>((task, send) => checkModel(task, (found) => void send({ found })));
