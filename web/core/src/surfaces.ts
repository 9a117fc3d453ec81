/** Separate entry (`@agent-rendering/core/surfaces`): the surfaces beside the conversation. */

export { idsIn, panelOf } from "./chat/panel.js";
export type { PanelContent, PanelSurface } from "./chat/panel.js";
export { PanelState } from "./chat/panel_state.js";
