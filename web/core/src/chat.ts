/** Separate entry (`@agent-rendering/core/chat`): state for packages that draw a conversation. */

export { ChatView, toolTitle } from "./chat/view.js";
export type { ToolCardState } from "./chat/view.js";
export { messagesOf, outgoingMessage, turnOf } from "./chat/messages.js";
export type { ChatMessage, MessagePart, SpokenMessage } from "./chat/messages.js";
export { AUTHOR, DRAWN, SOURCES } from "./chat/drawn.js";
export { drawingProps, isClosed } from "./chat/drawing_props.js";
export { storyOf } from "./protocol/story.js";
export type { Piece } from "./protocol/story.js";
