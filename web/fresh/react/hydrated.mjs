/** W86: one page, rendered on a server (`server.mjs`) and hydrated in the browser (`hydrate.mjs`). */

import { ArpChat, ArpMessage, ArpProvider, ArpRenderer, useArpChat } from "@agent-rendering/react";
import { Table } from "@agent-rendering/react/ui";
import { createElement as h, StrictMode, useId } from "react";
import { CHAT, parts } from "./parts.mjs";

function Rating({ stars, action }) {
  return h("button", { id: useId(), onClick: () => action("rate", { stars }) }, "★".repeat(stars));
}

function Reading() {
  const { messages, isConnected } = useArpChat();
  return h("p", { className: "reading" }, `${isConnected ? "online" : "away"}, ${messages.length} messages`);
}

export const page = h(
  StrictMode,
  null,
  h(
    ArpProvider,
    { url: "/", components: { "x-demo-rating": Rating } },
    h("div", { style: { height: 500 } }, h(ArpChat, CHAT)),
    ...parts(h, { ArpMessage, ArpRenderer, Table, Reading }),
  ),
);
