/**
 * Entry `@agent-rendering/elements/chat`: the chat without messages and components. The chat loads messages with the
 * first turn. Components are empty elements until the page loads them (`@agent-rendering/elements`).
 */

export { CellController } from "../base/cell_controller.js";
export { createContext } from "../base/context.js";
export type { ArpContext } from "../base/context.js";
export type { SignIn } from "./status/banner.js";
export { fileName } from "../base/clipboard.js";
export { icon } from "../base/icons.js";
export { STYLES } from "../style/sheet.js";
export { ArpChat } from "./chat.js";
export { ArpComposer } from "./composer/composer.js";
export type { Command } from "./composer/command_list.js";
export { icon as sign } from "./icons.js";
export type { IconName as SignName } from "./icons.js";
export { CHAT_KEYS } from "./keys.js";
export type { ChatKeys } from "./keys.js";
export { ArpMenu } from "./composer/menu.js";
export type { MenuItem } from "./composer/menu.js";
export type { ArpMessage, MessageActions } from "./message/message.js";
export type { FeedbackSource, Rating } from "./message/rating.js";
export { serverFeedback } from "./message/server_feedback.js";
export { adoptChatStyles, CHAT_STYLES } from "./styles.js";
