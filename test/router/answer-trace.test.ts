/** What the router keeps of the answers that it passes on, without a router. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ExecutionTrace } from "../../src/executions/index.js";
import { AnswerTrace } from "../../src/router/answer-trace.js";
import { withTime } from "../support/with-time.js";

/** A record that writes down what it is told. */
function record(id: string | null = "id") {
  const told: unknown[] = [];
  let read = () => {};
  const trace = {
    id,
    beforeReading: (fold: () => void) => {
      read = fold;
    },
    lifecycle: (text: string) => told.push(["lifecycle", text]),
    sent: (text: string, tokens: unknown, time: number) => told.push(["sent", text, tokens, typeof time]),
    answered: (body: string) => told.push(["answered", body]),
  } as unknown as ExecutionTrace;
  return { answer: new AnswerTrace(trace), told, read: () => read() };
}

test("a whole answer is recorded once, at its end", () => {
  const { answer, told } = record();
  answer.started("application/json; charset=utf-8");
  for (const byte of Buffer.from('{"a":"é"}')) answer.passed(Buffer.of(byte));
  assert.equal(told, []);
  answer.ended();
  answer.ended();
  assert.equal(told, [["answered", '{"a":"é"}']]);
});

test("an answer that is too large is not kept, and this is recorded once", () => {
  const { answer, told } = record();
  answer.started("application/json");
  for (let piece = 0; piece < 80; piece++) answer.passed(Buffer.alloc(1024 ** 2, 32));
  answer.passed(Buffer.from("{}"));
  answer.ended();
  assert.is(told.length, 1);
  assert.match(
    (told[0] as string[])[1] as string,
    /^the answer has more than \d+ bytes and is not recorded$/,
  );
});

test("events are recorded by whole lines, other content is not", () => {
  const { answer, told, read } = record();
  answer.started("text/event-stream; charset=utf-8");
  const bytes = Buffer.from("data: é\n\nda");
  answer.passed(bytes.subarray(0, 7)); // half of the é
  read();
  assert.equal(told, []);
  answer.passed(bytes.subarray(7));
  read();
  assert.equal(told, [["sent", "data: é\n\n", undefined, "number"]]);
  answer.passed(Buffer.from("ta: x\n"));
  read();
  assert.equal(told.slice(1), [["sent", "data: x\n", undefined, "number"]]);
  answer.passed(Buffer.from("\n"));
  read();
  assert.equal(told.slice(2), [["sent", "\n", undefined, "number"]]);
  answer.ended();
  read();
  assert.is(told.length, 3);
  const other = record();
  other.answer.started("text/html");
  other.answer.passed(Buffer.from("{}"));
  other.answer.ended();
  other.read();
  assert.equal(other.told, []);
});

test("events are read between other work once there are more than 64 KiB of them, at the time that they came", async () => {
  const { answer, told } = record();
  answer.started("text/event-stream");
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const line = `${"x".repeat(65_535)}\n`;
  answer.passed(Buffer.from(line));
  await turn();
  assert.equal(told, [], "65,536 bytes wait");
  answer.passed(Buffer.from("y\n"));
  assert.equal(told, []);
  await turn();
  assert.equal(
    told.map((one) => (one as string[])[1]?.length),
    [65_536, 2],
  );
  // Counted anew from there.
  answer.passed(Buffer.from(line));
  await turn();
  assert.is(told.length, 2);
  answer.passed(Buffer.from("z\n"));
  await turn();
  assert.is(told.length, 4, "and read anew");
});

test("each piece is recorded with its arrival time", () => {
  const times: number[] = [];
  let read = () => {};
  const trace = {
    id: "id",
    beforeReading: (fold: () => void) => {
      read = fold;
    },
    sent: (_text: string, _tokens: unknown, time: number) => times.push(time),
  } as unknown as ExecutionTrace;
  const answer = new AnswerTrace(trace);
  let ms = 0;
  withTime({ "Date.now": () => ms }, () => {
    answer.started("text/event-stream");
    for (ms of [1000, 2500, 7000]) {
      answer.passed(Buffer.from("x\n"));
      if (ms === 2500) read();
    }
    ms = 9000;
    read();
  });
  assert.equal(times, [1, 2.5, 7], "in Unix seconds");
});

test("where no record is kept, no answer is", () => {
  const { answer, told } = record(null);
  answer.started("application/json");
  answer.passed(Buffer.from("{}"));
  answer.ended();
  assert.equal(told, [["answered", ""]]);
});

test.run();
