/** A WebSocket as a link: one text frame is one frame. Source: protocol.md 1 and 6. */

import { ERROR_CODES } from "./generated/tables.js";
import type { RendererMessage } from "./generated/wire.js";
import type { Link, Opening } from "./link.js";

const SUBPROTOCOL = "arp.session.v1.json";
const NOT_ALLOWED = 1008;
const TOO_BIG = 1009;

/** Opens a socket and says hello on it. */
export function openSocket({ address, hello, token, world, listener }: Opening): Link | null {
  if (world.WebSocket === undefined) return null;
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
    if (code !== NOT_ALLOWED && code !== TOO_BIG) {
      listener.lost({ reason: told, unavailable: !opened });
      return;
    }
    const name = code === NOT_ALLOWED ? "PERMISSION_DENIED" : "RESOURCE_LIMIT";
    listener.lost({ reason: told, refusal: { error: told, code: ERROR_CODES[name] } });
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
