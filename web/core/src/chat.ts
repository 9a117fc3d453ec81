/** An entry of its own (`@agent-rendering/core/chat`): what draws a conversation builds on. */

export { ChatView, toolTitle } from "./chat_view.js";
export type { ToolCardState } from "./chat_view.js";
export { messagesOf, outgoingMessage, turnOf } from "./chat_messages.js";
export type { ChatMessage, MessagePart, SpokenMessage } from "./chat_messages.js";
export { AUTHOR, DRAWN, SOURCES } from "./drawn.js";
export { drawingProps, isClosed } from "./drawing_props.js";
export { storyOf } from "./story.js";
export type { Piece } from "./story.js";
