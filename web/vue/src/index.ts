/** The Agent Rendering Protocol for Vue; see README.md. */

export { useArp } from "./use_arp.js";
export type { UseArpOptions, UseArpReturn } from "./use_arp.js";
export { useArpChat } from "./use_arp_chat.js";
export type { UseArpChatOptions, UseArpChatReturn } from "./use_arp_chat.js";
export {
  ArpCapabilitiesKey,
  ArpClientKey,
  ArpComponentsKey,
  ArpConnectedKey,
  provideArp,
  useArpClient,
  useArpStatus,
  useArpTurn,
  useArpTurnIds,
} from "./provide.js";
export type { ArpComponentProps, ArpComponents } from "./provide.js";
export { useArpPopupNames, useArpSurface, useArpSurfaceNames } from "./use_surface.js";
export type { UseArpSurfaceReturn } from "./use_surface.js";
export { useCell } from "./cell.js";
export type { ClientOptions } from "./use_client.js";

export { ArpProvider } from "./provider.js";
export { ArpChat } from "./chat.js";
export type { ArpChatElement } from "./chat.js";
export { ArpMessage } from "./message.js";
export { ArpRenderer } from "./renderer.js";
export { ArpActivityPanel } from "./activity_panel.js";

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
