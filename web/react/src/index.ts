/** The Agent Rendering Protocol for React; see README.md. */

export { useArp } from "./use_arp.js";
export type { ArpState, UseArpOptions, UseArpReturn } from "./use_arp.js";
export { useArpChat } from "./use_arp_chat.js";
export type { UseArpChatOptions, UseArpChatReturn } from "./use_arp_chat.js";
export { ArpProvider, useArpClient, useArpContext, useArpStatus, useArpTurn, useArpTurnIds } from "./context.js";
export type { ArpComponentProps, ArpComponents, ArpContextValue, ArpProviderProps } from "./context.js";
export { useArpPopupNames, useArpSurface, useArpSurfaceNames } from "./use_surface.js";
export type { UseArpSurfaceReturn } from "./use_surface.js";
export { useCell } from "./cell.js";
export type { ClientOptions } from "./use_client.js";

export { ArpChat } from "./chat.js";
export type { ArpChatElement, ArpChatProps } from "./chat.js";
export { ArpMessage } from "./message.js";
export type { ArpMessageProps } from "./message.js";
export { ArpRenderer } from "./renderer.js";
export type { ArpRendererProps } from "./renderer.js";
export { ArpActivityPanel } from "./activity_panel.js";
export type { ArpActivityPanelProps } from "./activity_panel.js";

export type {
  ArpCapabilities,
  ArpClient,
  ChatSession,
  ChatSessionDetail,
  Component,
  OpenPermission,
  ToolRenderEvent,
  TurnState,
} from "@agent-rendering/core";
export type { ChatMessage, MessagePart, ToolCardState } from "@agent-rendering/core/chat";
export type { FeedbackSource, Rating, SignIn } from "@agent-rendering/elements";
