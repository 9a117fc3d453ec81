/** The Agent Rendering Protocol as custom elements. */

export * from "./components/index.js";
export {
  adoptChatStyles,
  ArpChat,
  ArpComposer,
  ArpMenu,
  CHAT_KEYS,
  CHAT_STYLES,
  sign,
  type ChatKeys,
  type Command,
  type MenuItem,
  type MessageActions,
  type SignName,
} from "./chat/index.js";
export { ArpMessage } from "./chat/message.js";
