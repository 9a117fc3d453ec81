/**
 * The page begins, when the document has shown what it has: first the chat, then, when the browser has a
 * moment, what draws messages and components.
 */

import "@agent-rendering/elements/chat";
import "@agent-rendering/elements/sessions";

import "./link_state.js";
import { ArpPage } from "./page.js";

customElements.define("arp-page", ArpPage);
