/** A WebSocket as a link: one text frame is one frame. Source: protocol.md 1 and 6. */

import { PERMISSION_DENIED, RESOURCE_LIMIT } from "./generated/codes.js";
import type { RendererMessage } from "./generated/wire.js";
import type { Link, Opening } from "./link.js";

const SUBPROTOCOL = "arp.session.v1.json";
/** Close codes after which coming back makes no sense, as errors. */
const REFUSALS = new Map<number, number>([
  [1008, PERMISSION_DENIED],
  [1009, RESOURCE_LIMIT],
]);

/** Opens a socket and says hello on it. */
export function openSocket({ address, hello, token, world, listener }: Opening): Link {
  if (world.WebSocket === undefined) throw new TypeError("no WebSocket here");
  const socket = new world.WebSocket(address.socket, SUBPROTOCOL);
  let opened = false;
  const send = (message: RendererMessage) => socket.send(JSON.stringify(message));
  socket.onopen = () => {
    opened = true;
    send(token === null ? hello : { ...hello, token });
  };
  socket.onmessage = (event) => listener.frame(event.data);
  socket.onerror = () => undefined; // its close says all there is to know
  socket.onclose = ({ code, reason }) => {
    const told = reason || `the connection closed (${code})`;
    const refused = REFUSALS.get(code);
    if (refused === undefined) listener.lost({ reason: told, unavailable: !opened });
    else listener.lost({ reason: told, refusal: { error: told, code: refused } });
  };
  return {
    isSocket: true,
    send,
    close() {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    },
  };
}
