// A chat hook on top of a client of the draft: it says no hello, and sends nothing while a stream is open, which a
// commit with `final: true` ends. Arguments: the address, the session, and what to send, one after the other. It
// prints each stream as a line of JSON: its text, its components, its errors.

import { dial } from "./websocket.mjs";

const [url, session_id, ...texts] = process.argv.slice(2);
let shown = { text: "", components: [], errors: [] };
let isStreaming = false;

const socket = await dial(url, undefined, (frame) => {
  const { type, payload, components, final } = JSON.parse(frame);
  if (type === "delta") shown.text += payload.delta;
  else if (type === "render") shown.components.push(...components.map((one) => one.type));
  else if (type === "error") shown.errors.push(payload.error ?? payload.message);
  else if (type === "commit" && final && isStreaming) {
    console.log(JSON.stringify(shown));
    isStreaming = false;
    next();
  }
});

function next() {
  if (texts.length === 0) return socket.close();
  shown = { text: "", components: [], errors: [] };
  isStreaming = true;
  socket.send({ v: 1, type: "input", session_id, input_type: "text", data: { text: texts.shift() }, source_component: "" });
}

next();
