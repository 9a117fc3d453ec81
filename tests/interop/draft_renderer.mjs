// A renderer in the object dialect, written from the draft alone: version 1 of each interface, no conversation, an
// empty `done`. Argument: the address. It says "offers", selects the first row of the table that comes, and prints
// what its surface shows when the agent has answered.

import { dial } from "./websocket.mjs";

const INTERFACES = ["ArpCompositor", "ArpInput", "ArpShell", "ArpSession", "component:table", "component:status-card"];
const objects = new Map([[0, "ArpDisplay"]]);
let seq = 0;
let input = 0;
let surface = 0;
let serial = 9;
let pending = [];
let finals = 0;
const tree = new Map();

const socket = await dial(process.argv[2], "arp.v1.json", (frame) => {
  const messages = JSON.parse(frame);
  for (const message of Array.isArray(messages) ? messages : [messages]) take(message);
});

function say(id, op, payload) {
  socket.send({ v: 1, id, op, seq: ++seq, payload });
}

function act(type, data, more = {}) {
  say(input, "input", { surface_id: surface, serial: ++serial, type, data, ...more });
}

function take({ id, op, seq: number, payload }) {
  if (op === "error") {
    console.error(JSON.stringify(payload));
    process.exit(1);
  }
  if (op === "get_registry") {
    INTERFACES.forEach((name, at) => say(payload.new_id, "global", { name: at + 1, interface: name, version: 1 }));
  } else if (op === "bind") {
    objects.set(payload.new_id, payload.interface);
    if (payload.interface === "ArpInput") input = payload.new_id;
  } else if (op === "sync") say(payload.callback_id, "done", {});
  else if (op === "create_surface" && surface === 0) surface = payload.new_id;
  else if (op === "get_toplevel") say(payload.new_id, "configure", { width: 800, height: 600, states: ["activated"] });
  else if (id === surface && (op === "render" || op === "patch")) pending.push(payload);
  else if (id === surface && op === "commit") commit(number, payload);
}

function commit(number, { final }) {
  for (const { components = [], ops = [], replace } of pending.splice(0)) {
    if (replace) tree.clear();
    for (const one of components) tree.set(one.id, one);
    for (const one of ops) apply(one);
  }
  say(surface, "frame_ack", { commit_seq: number });
  if (seq > 0 && serial === 9 && input !== 0) return act("text", { text: "offers" });
  const table = [...tree.values()].find(({ type }) => type === "table");
  if (table && serial === 10) act("selection", { selected: [0] }, { source_component: table.id });
  if (final) finals += 1;
  if (finals === 2 || (final && serial === 11)) {
    console.log(JSON.stringify([...tree.values()].map(({ type, props }) => [type, props.content ?? props.title])));
    socket.close();
  }
}

function apply({ op, target, path, value, component }) {
  if (op === "insert") tree.set(component.id, component);
  else if (op === "remove") tree.delete(target);
  else if (op === "replace") tree.set(component.id, component);
  else if (op === "update") {
    const keys = path.split(".");
    const last = keys.pop();
    keys.reduce((at, key) => at[key], tree.get(target))[last] = value;
  }
}
