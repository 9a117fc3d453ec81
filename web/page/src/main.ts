/**
 * Start of the page, after the static document is shown. This script has the chat; the code that draws messages and
 * components is loaded later, when the browser is idle.
 */

import "@agent-rendering/elements/chat";
import "@agent-rendering/elements/sessions";

import "./link_state.js";
import { ArpPage } from "./page.js";

customElements.define("arp-page", ArpPage);
