/**
 * A link over a WebSocket: each text message is a frame. It offers no subprotocol. A server then uses JSON in the session
 * dialect. A browser would close the connection to a server that selects none of the offered ones, such as a server of
 * the v0.1 draft. Source: protocol.md 1 and 6.
 */

import type { RendererMessage } from "../protocol/generated/wire.js";
import { lossByClose, type Link, type Opening } from "./link.js";

/** Open a socket and send the hello. */
export function openSocket({ address, hello, token, world, listener }: Opening): Link {
  if (world.WebSocket === undefined) throw new TypeError("no WebSocket here");
  const socket = new world.WebSocket(address.socket);
  let opened = false;
  const send = (message: RendererMessage) => socket.send(JSON.stringify(message));
  socket.onopen = () => {
    opened = true;
    send({ ...hello(), ...(token !== null && { token }) });
  };
  socket.onmessage = (event) => listener.frame(event.data);
  // Usually `close` follows and says why. In Node.js 20 and 22 it does not if there was never a connection, and the
  // driver would wait for the timeout of the handshake.
  socket.onerror = () => {
    if (socket.readyState === 0) listener.lost({ ...lossByClose(1006, ""), unavailable: true });
  };
  socket.onclose = ({ code, reason }) => {
    listener.lost({ ...lossByClose(code, reason), unavailable: !opened });
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
