// A renderer that was written from docs/protocol.md alone: `node renderer.mjs ws://127.0.0.1:8080/_arp/v1 [SESSION]`.
// It shows text and yes-or-no questions; the server makes text of everything else. Each line that is typed is an input.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

let [url, session_id] = process.argv.slice(2);
const capabilities = { components: ["text", "confirm"], features: ["streaming", "input", "resume"] };
const PAGE = process.stdout.isTTY ? "\x1b[2J\x1b[H" : "\f";
const CHANGES = ["delta", "input", "tool_start", "commit"]; // without a seq, they leave no place in the log
const sent = new Map(); // inputs that are neither acknowledged nor refused, by their id
let turns = new Map(); // what shows, by the id of the turn
let snapshot = null; // the turns of a snapshot, until its commit
let pending = []; // renders and patches, until their commit
let resume; // { epoch, seq } of what is applied; absent: no place
let [socket, epoch, refusal, isOpen, isEnding, wait] = [null, "", "", false, false, 250];

const send = (message) => socket.send(JSON.stringify({ v: 1, ...message }));

function turn(id) {
  const all = snapshot ?? turns;
  const begun = { said: [], parts: [], errors: [], tools: new Map(), permissions: new Map(), status: "" };
  return all.get(id) ?? all.set(id, begun).get(id);
}

/** Returns the list that a component is in, and its place there. */
function find(id) {
  for (const { parts } of (snapshot ?? turns).values()) {
    const at = parts.findIndex((part) => part.id === id);
    if (at >= 0) return { parts, at, part: parts[at] };
  }
}

/** Returns the number of a text part of a turn, or 0 for another component. */
const numberOf = (turn, { id, type } = {}) => (type === "text" && id.startsWith(`${turn}/`) ? Number(id.split("/").at(-1)) : 0);

function extend(id, { delta, target }) {
  const { parts } = turn(id);
  let part = target ? find(target)?.part : parts.at(-1);
  if (!target && !numberOf(id, part)) {
    let number = 1 + Math.max(0, ...parts.map((one) => numberOf(id, one)));
    while (find(`${id}/${number}`)) number += 1;
    parts.push((part = { id: `${id}/${number}`, type: "text", props: {} }));
  }
  if (part?.type === "text") part.props.content = (part.props.content ?? "") + delta;
}

function apply({ turn_id, components = [], replace, ops = [] }) {
  if (replace) for (const { parts } of (snapshot ?? turns).values()) parts.length = 0;
  for (const one of components) {
    const found = find(one.id);
    if (found) found.parts[found.at] = one;
    else turn(turn_id).parts.push(one);
  }
  for (const { op, target, path, value, component, after } of ops) {
    const { at, part, parts = turn(turn_id).parts } = find(target ?? after) ?? {};
    const put = (one, place) => parts.splice(after ? parts.findIndex(({ id }) => id === after) + 1 : place, 0, one);
    if (op === "insert") put(component, after === null ? 0 : parts.length);
    else if (op === "reorder") put(parts.splice(at, 1)[0], 0);
    else if (op === "remove") parts.splice(at, 1);
    else if (op === "replace") parts[at] = component;
    else {
      const keys = path.split(".");
      keys.slice(0, -1).reduce((inner, key) => inner[key], part)[keys.at(-1)] = value;
    }
  }
}

function take({ type, seq, turn_id: id, payload, surface = "main", ...message }) {
  if (seq <= resume?.seq && type !== "session" && !snapshot) return;
  if (type === "ack") sent.delete(message.id);
  else if (type === "error") {
    sent.delete(payload.id);
    const text = `! ${payload.error ?? payload.message}`;
    if (id) turn(id).errors.push(text);
    else refusal = text;
  } else if (surface !== "main") return;
  else if (type === "render" || type === "patch") return void pending.push({ turn_id: id, ...message });
  else if (type === "session") {
    if (message.resume === "new") [turns, resume] = [new Map(), { epoch: message.epoch, seq }];
    snapshot = message.resume === "snapshot" ? new Map() : null;
    [session_id, epoch, isOpen, wait] = [message.session_id, message.epoch, true, 250];
    for (const one of sent.values()) send(one);
    return;
  } else if (type === "delta") extend(id, payload);
  else if (type === "input") turn(id).said.push(message.data.text && `> ${message.data.text}`);
  else if (type === "tool_start") turn(id).tools.set(payload.call_id, payload.args);
  else if (type === "turn") {
    turn(id).status = message.status;
    if (message.permission) turn(id).permissions.set(message.permission.component, message.permission);
  } else if (type === "commit") {
    for (const one of pending.splice(0)) apply(one);
    if (message.final) turn(id).isOver = true;
    if (snapshot && seq !== undefined) [turns, snapshot] = [snapshot, null];
  }
  if (seq !== undefined && !snapshot) resume = { epoch, seq };
  else if (CHANGES.includes(type) || (type === "error" && id && !payload.debug)) resume = undefined;
}

const isOpenQuestion = ({ type, props }) => type === "confirm" && (props.state ?? "open") === "open";

function textOf(part, { tools, permissions }) {
  if (part.type === "text") return part.props.content;
  const { tool, call_id, input } = permissions.get(part.id) ?? {};
  const { title, message = "", answer, state } = part.props;
  const about = tool ? `${tool} ${input === undefined ? tools.get(call_id) : JSON.stringify(input)}` : message;
  return `? ${title} ${about} (${isOpenQuestion(part) ? "y/n" : (answer ?? state)})`;
}

function draw() {
  const linesOf = (turn) => [...turn.said, ...turn.parts.map((one) => textOf(one, turn)), ...turn.errors, `(${turn.status})`];
  const lines = [...turns.values()].flatMap(linesOf);
  const text = [...lines, refusal].filter(Boolean).join("\n");
  process.stdout.write(`${PAGE}${text.replace(/[^\P{Cc}\n]/gu, "")}\n`);
}

function type(line) {
  const said = { input_type: "text", data: { text: line } };
  const asking = [...turns.values()].findLast(({ parts }) => parts.some(isOpenQuestion));
  const [isYes, isNo] = [/^y(es)?$/i.test(line), /^no?$/i.test(line)];
  if (asking && (isYes || isNo)) {
    const source_component = asking.parts.findLast(isOpenQuestion).id;
    const permission = asking.permissions.get(source_component);
    const payload = permission && { digest: permission.digest, ...(isYes && { scope: "once" }) };
    Object.assign(said, { input_type: "action", data: { action: isYes ? "confirm" : "deny", payload }, source_component });
  }
  const message = { type: "input", session_id, id: randomUUID(), ...said };
  sent.set(message.id, message);
  refusal = "";
  if (isOpen) send(message);
}

function connect() {
  socket = new WebSocket(url);
  socket.onopen = () => send({ type: "hello", session_id, capabilities, resume });
  socket.onmessage = ({ data }) => {
    for (const message of [JSON.parse(data)].flat()) take(message);
    if (snapshot) return;
    draw();
    closeWhenDone();
  };
  socket.onclose = ({ code }) => lost(code);
  socket.onerror = () => socket.readyState === WebSocket.CONNECTING && lost(); // Node.js 20 has no close event then
}

/** Ends when there is no more input, and nothing is left to show. */
function closeWhenDone() {
  const isIdle = [...turns.values()].every(({ isOver, status }) => isOver || status === "waiting");
  if (isEnding && isOpen && !snapshot && sent.size === 0 && isIdle) socket.close();
}

function lost(code) {
  if (isEnding || [1000, 1008, 1009].includes(code)) process.exit(sent.size > 0 ? 1 : 0);
  [isOpen, snapshot, pending] = [false, null, []];
  setTimeout(connect, (wait = Math.min(wait * 2, 10_000)));
}

connect();
createInterface({ input: process.stdin })
  .on("line", type)
  .on("close", () => {
    isEnding = true;
    closeWhenDone();
  });
