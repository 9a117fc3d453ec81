/** An entry of its own (`@agent-rendering/core/surfaces`): what shows beside the conversation. */

export { idsIn, panelOf } from "./chat/panel.js";
export type { PanelContent, PanelSurface } from "./chat/panel.js";
export { PanelState } from "./chat/panel_state.js";
