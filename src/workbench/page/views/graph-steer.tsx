import { useState } from "preact/hooks";
import type { ChangedPoint } from "../../../contracts/names.js";
import { figureOf } from "../../../findings/numbers.js";
import { addEdit } from "../chat-settings.js";
import type { DrawnNode } from "../graph-file.js";
import { clampCommand, clampJob, type SteeredGraph, servedMisfit } from "../graph-steering.js";
import { jobRequest, submit } from "../jobs.js";
import { known, useTopic } from "../store.js";
import { ChatLink } from "./chat-settings.js";
import { CommandCode } from "./command-code.js";
import { clampEdit, headEdit, mostLevel } from "./edits.js";
import { NumberField } from "./fields.js";
import { Button, Problem, useTrying } from "./form.js";
import { RequestCode } from "./request-code.js";

/**
 * Interventions on a node: a feature is clamped in the chat, or in a comparison; a head is ablated in the chat. Chat cannot edit
 * single neurons. The served model must be the graph's.
 */
export function SteerFromNode({ job, node }: { job: SteeredGraph; node: DrawnNode }) {
  useTopic("state");
  const server = known.state?.server;
  const misfit = servedMisfit(job.result, server);
  const { kind, layer, index } = node;
  if (layer === null || index === null) return null;
  if (kind === "feature") return <ClampFeature job={job} node={node} misfit={misfit} />;
  if (kind !== "head" || server?.points.includes("head_out") !== true) return null;
  if (misfit !== undefined) return <p class="soft">{misfit}</p>;
  return (
    <p>
      <ChatLink prepare={() => addEdit(headEdit(layer, index))}>Ablate this head in chat</ChatLink>
    </p>
  );
}

function ClampFeature({
  job,
  node,
  misfit,
}: {
  job: SteeredGraph;
  node: DrawnNode;
  misfit: string | undefined;
}) {
  const [level, setLevel] = useState(0);
  const { problem, trying } = useTrying();
  const block = job.result.transcoders?.blocks.find(({ layer }) => layer === node.layer);
  if (block === undefined) return null;
  if (block.writes_blocks !== undefined) {
    return <p class="soft">Features that write into several blocks cannot be clamped.</p>;
  }
  const place = { ...block, index: node.index as number, level };
  const compared = clampJob(job, place);
  return (
    <>
      <p class="row">
        <NumberField
          label="Clamp its activation to"
          min={0}
          max={mostLevel}
          step={0.1}
          value={level}
          onChange={setLevel}
        />
        <span class="soft">{node.value === null ? "" : `${figureOf(node.value)} here; 0 ablates it`}</span>
        {misfit === undefined && (
          <ChatLink
            prepare={() =>
              addEdit(
                clampEdit(
                  {
                    ...{ dictionary: block.dictionary, index: place.index, layer: block.layer },
                    point: block.writes as ChangedPoint,
                  },
                  level,
                ),
              )
            }
          >
            Clamp this feature in chat
          </ChatLink>
        )}
        <Button onClick={() => void trying(async ({ go }) => go(`/jobs/${await submit(compared)}`))}>
          Measure the clamp
        </Button>
        <Problem sentence={problem} />
      </p>
      {misfit !== undefined && <p class="soft">{misfit}</p>}
      <CommandCode lines={[clampCommand(job, place)]} />
      <RequestCode of="clamp" request={() => jobRequest(compared)} />
    </>
  );
}
