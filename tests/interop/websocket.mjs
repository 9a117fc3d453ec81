// WebSocket (RFC 6455) in both roles, as far as these programs need it: text messages, no extensions.

import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";

const accept = (key) => createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");

/** Answers an upgrade without a subprotocol, whatever was offered. */
export function accepted(socket, { headers }, onText) {
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  socket.write([...lines, `Sec-WebSocket-Accept: ${accept(headers["sec-websocket-key"])}`, "", ""].join("\r\n"));
  return talk(socket, false, Buffer.alloc(0), onText);
}

/** Connects to a server; offers a subprotocol if one is given. */
export function dial(url, protocol, onText) {
  const headers = { Upgrade: "websocket", Connection: "Upgrade", "Sec-WebSocket-Version": "13" };
  headers["Sec-WebSocket-Key"] = randomBytes(16).toString("base64");
  if (protocol) headers["Sec-WebSocket-Protocol"] = protocol;
  return new Promise((resolve, reject) => {
    const asked = request(url.replace("ws:", "http:"), { headers });
    asked.on("upgrade", (_, socket, head) => resolve(talk(socket, true, head, onText)));
    asked.on("response", (response) => reject(new Error(`HTTP ${response.statusCode}`)));
    asked.on("error", reject);
    asked.end();
  });
}

function talk(socket, isClient, head, onText) {
  let waiting = Buffer.alloc(0);
  let text = "";
  const send = (opcode, payload) => {
    const { length } = payload;
    const size = length < 126 ? Buffer.from([length]) : Buffer.from([126, length >> 8, length & 255]);
    if (isClient) size[0] |= 128;
    const mask = isClient ? randomBytes(4) : Buffer.alloc(0);
    const masked = isClient ? payload.map((byte, at) => byte ^ mask[at % 4]) : payload;
    socket.write(Buffer.concat([Buffer.from([128 | opcode]), size, mask, masked]));
  };
  const read = (data) => {
    waiting = Buffer.concat([waiting, data]);
    for (;;) {
      if (waiting.length < 2) return;
      let length = waiting[1] & 127;
      let at = 2;
      if (length === 126) [length, at] = [waiting.length < 4 ? Infinity : waiting.readUInt16BE(2), 4];
      else if (length === 127) [length, at] = [waiting.length < 10 ? Infinity : Number(waiting.readBigUInt64BE(2)), 10];
      const isMasked = (waiting[1] & 128) !== 0;
      const begin = at + (isMasked ? 4 : 0);
      if (waiting.length < begin + length) return;
      let payload = waiting.subarray(begin, begin + length);
      if (isMasked) payload = payload.map((byte, place) => byte ^ waiting[at + (place % 4)]);
      const [isLast, opcode] = [(waiting[0] & 128) !== 0, waiting[0] & 15];
      waiting = waiting.subarray(begin + length);
      if (opcode === 8) return void socket.end();
      if (opcode === 9) send(10, payload);
      if (opcode > 1) continue;
      text += payload.toString();
      if (isLast) [text, head] = ["", onText(text)];
    }
  };
  socket.on("data", read);
  socket.on("error", () => socket.destroy());
  if (head.length > 0) setImmediate(() => read(head));
  return { send: (message) => send(1, Buffer.from(JSON.stringify(message))), close: () => socket.end() };
}
