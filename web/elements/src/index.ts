/** The Agent Rendering Protocol as custom elements. */

export * from "./components/index.js";
export {
  adoptChatStyles,
  ArpChat,
  ArpComposer,
  ArpMenu,
  CHAT_KEYS,
  CHAT_STYLES,
  serverFeedback,
  sign,
  type ChatKeys,
  type Command,
  type FeedbackSource,
  type MenuItem,
  type MessageActions,
  type Rating,
  type SignIn,
  type SignName,
} from "./chat/index.js";
export { ArpMessage } from "./chat/message/message.js";
