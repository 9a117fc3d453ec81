// An agent that was written from docs/protocol.md alone. It speaks JSON over a pipe, one message a line:
// `arp connect stdio:"node agent.mjs"`. It keeps notes: each text is one, `clear` removes them all after a question.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

function* agent(text, notes) {
  if (text === "fail") throw new Error("nobody sees this text");
  if (text !== "clear") {
    notes.push(text);
    yield { type: "delta", payload: { delta: `That makes **${notes.length}**.` } };
    const rows = notes.map((note, at) => [at + 1, note]);
    yield { show: { id: "notes", type: "table", props: { headers: ["#", "note"], rows } } };
    return;
  }
  const props = { title: `Remove ${notes.length} notes?`, state: "open" };
  if (yield { ask: { id: randomUUID(), type: "confirm", props } }) {
    notes.length = 0;
    yield { op: { op: "remove", target: "notes" } };
    yield { type: "delta", payload: { delta: "Removed." } };
  } else yield { type: "delta", payload: { delta: "Nothing was removed." } };
}

const asText = {
  table: ({ headers, rows }) => [headers, ...rows].map((row) => row.join("  ")).join("\n"),
  confirm: ({ title, state, answer }) => `${title} ${state === "open" ? "Reply yes or no." : (answer ?? state)}`,
};
const WORDS = { confirm: true, yes: true, "[confirmed] confirm": true, deny: false, no: false, "[denied] deny": false };
const ANSWERS = new Map(Object.entries(WORDS)); // actions, typed words, and what a client of the draft says
const sessions = new Map();
let known; // the components of the renderer; absent: it said no hello, and shows everything
let current; // the session of the connection

const put = (message) => process.stdout.write(`${JSON.stringify({ v: 1, ...message })}\n`);
const refuse = (code, error, id, more) => put({ type: "error", session_id: current?.id, payload: { error, code, id, ...more } });

function degraded(component) {
  if (!known || known.has(component.type)) return component;
  return { id: component.id, type: "text", props: { content: asText[component.type](component.props) } };
}

const send = ({ components, ...message }) => put({ ...message, components: components?.map(degraded) });

function open(id = randomUUID()) {
  const begun = { id, epoch: randomUUID(), seq: 0, log: [], notes: [], inputs: new Map(), turns: 0 };
  current = sessions.get(id) ?? begun;
  sessions.set(id, current);
  return current;
}

/** Adds a fact to the log, and sends its messages. */
function record(session, ...messages) {
  session.seq += 1;
  for (const message of messages) {
    session.log.push({ session_id: session.id, seq: session.seq, ...message });
    send(session.log.at(-1));
  }
}

function onHello({ session_id, capabilities, resume }) {
  const session = open(session_id);
  const { components = [] } = capabilities ?? {};
  known = new Set(["text", ...(Array.isArray(components) ? components : Object.keys(components))]);
  const isReplay = resume?.epoch === session.epoch && resume.seq <= session.seq;
  const how = isReplay ? "replay" : session.log.length > 0 ? "snapshot" : "new";
  const { id, epoch, seq } = session;
  put({ type: "session", session_id: id, epoch, seq, resume: how, workflow: "notes" });
  for (const message of session.log) {
    if (!isReplay) send({ ...message, seq: undefined });
    else if (message.seq > resume.seq) send(message);
  }
  if (how === "snapshot") put({ type: "commit", session_id: id, seq, final: false });
}

/** Lets the agent work until it asks, or its turn is over. */
function run(session, turn_id, work, answer) {
  const commit = (final, ...changes) =>
    record(session, ...changes.map((one) => ({ turn_id, ...one })), { type: "commit", turn_id, final });
  try {
    for (let { value, done } = work.next(answer); !done; { value, done } = work.next()) {
      if (value.type === "delta") record(session, { turn_id, ...value });
      else if (value.op) commit(false, { type: "patch", ops: [value.op] });
      else commit(false, { type: "render", components: [value.show ?? value.ask] });
      if (!value.ask) continue;
      session.waiting = { turn_id, work, component: value.ask };
      record(session, { type: "turn", turn_id, status: "waiting" });
      if (!known) commit(true);
      return;
    }
    record(session, { type: "turn", turn_id, status: "completed" });
  } catch {
    record(session, { type: "error", turn_id, payload: { error: "The agent failed.", code: 18 } });
    record(session, { type: "turn", turn_id, status: "failed" });
  }
  commit(true);
}

function onInput({ session_id, input_type, data, source_component, id }) {
  const session = session_id ? open(session_id) : (current ?? open());
  const acknowledge = (turn_id) => {
    session.inputs.set(id, turn_id);
    if (id) put({ type: "ack", id, session_id: session.id, turn_id });
  };
  if (id && session.inputs.has(id)) return acknowledge(session.inputs.get(id));
  const at = new Date().toISOString();
  const echo = (turn_id) => record(session, { type: "input", turn_id, input_type, data, source_component, id, at });
  const word = input_type === "action" ? data?.action : data?.text?.trim().toLowerCase();
  const { waiting } = session;
  if (waiting && (ANSWERS.has(word) || word === "arp.cancel") && [undefined, "", waiting.component.id].includes(source_component)) {
    session.waiting = undefined;
    if (ANSWERS.has(word)) echo(waiting.turn_id);
    acknowledge(waiting.turn_id);
    return resume(session, waiting, ANSWERS.get(word));
  }
  if (waiting) return refuse(17, "Answer the question first.", id, { retryable: true });
  if (input_type !== "text" || !data?.text) return refuse(11, "This agent takes text alone.", id);
  const turn_id = `t${(session.turns += 1)}`;
  echo(turn_id);
  record(session, { type: "turn", turn_id, status: "running" });
  acknowledge(turn_id);
  run(session, turn_id, agent(data.text, session.notes));
}

/** Closes a question on every screen, and gives its answer to the agent; without one, the turn is cancelled. */
function resume(session, { turn_id, component, work }, answer) {
  const props = { ...component.props, ...(answer === undefined ? { state: "cancelled" } : { state: "answered", answer }) };
  record(session, { type: "render", turn_id, components: [{ ...component, props }] }, { type: "commit", turn_id, final: false });
  record(session, { type: "turn", turn_id, status: answer === undefined ? "cancelled" : "running" });
  if (answer === undefined) record(session, { type: "commit", turn_id, final: true });
  else run(session, turn_id, work, answer);
}

const features = ["streaming", "input", "resume"];
const workflows = [{ name: "notes", title: "Notes" }];
put({ type: "hello", capabilities: { components: ["text", "table", "confirm"], features, title: "Notes", workflows } });
createInterface({ input: process.stdin }).on("line", (line) => {
  try {
    const messages = [JSON.parse(line)].flat();
    if (messages.length > 64) throw new Error("more than 64 messages");
    for (const message of messages) {
      if (message.type === "hello") onHello(message);
      else if (message.type === "input") onInput(message);
      else refuse(11, `This agent reads hello and input, not ${message.type}.`, message.id);
    }
  } catch (error) {
    refuse(11, `This line cannot be read: ${error.message}.`);
  }
});
