/**
 * A WebSocket as a link: one text frame is one frame. It offers no subprotocol: without one a server speaks JSON in the
 * session dialect, and a browser gives up on a server that selects none of those offered, as one of the v0.1 draft
 * does. Source: protocol.md 1 and 6.
 */

import type { RendererMessage } from "../protocol/generated/wire.js";
import { lossByClose, type Link, type Opening } from "./link.js";

/** Opens a socket and sends the hello. */
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
  // Its close says all there is to know. But in Node.js 20 and 22 none follows where there was no connection.
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
