/**
 * The chat without messages and components, for pages that load those a moment later
 * (`@agent-rendering/elements`): until then their places are empty. The chat itself loads messages
 * with the first turn.
 */

export { CellController } from "../cell_controller.js";
export { createContext } from "../context.js";
export type { ArpContext } from "../context.js";
export type { SignIn } from "./banner.js";
export { fileName } from "../clipboard.js";
export { icon } from "../icons.js";
export { STYLES } from "../style/sheet.js";
export { ArpChat } from "./chat.js";
export { ArpComposer } from "./composer.js";
export type { Command } from "./command_list.js";
export { icon as sign } from "./icons.js";
export type { IconName as SignName } from "./icons.js";
export { CHAT_KEYS } from "./keys.js";
export type { ChatKeys } from "./keys.js";
export { ArpMenu } from "./menu.js";
export type { MenuItem } from "./menu.js";
export type { ArpMessage, MessageActions } from "./message.js";
export type { FeedbackSource, Rating } from "./rating.js";
export { serverFeedback } from "./server_feedback.js";
export { adoptChatStyles, CHAT_STYLES } from "./styles.js";
