/** State and actions of a chat, for applications that draw their own bubbles. */

import {
  createSessionAPI,
  type ArpCapabilities,
  type ArpClient,
  type ArpClientCallbacks,
  type OpenPermission,
  type Status,
} from "@agent-rendering/core";
import { ChatView, type ChatMessage, type ToolCardState } from "@agent-rendering/core/chat";
import { useMemo } from "react";
import { fixed } from "../../bindings/src/cells.js";
import { chatActions, type ChatActions, type DraftOptions } from "../../bindings/src/chat.js";
import { capabilitiesOf } from "../../bindings/src/status.js";
import { useCell } from "./cell.js";
import { useArpClient, useArpStatus } from "./context.js";
import { useClient, type ClientOptions } from "./use_client.js";
import { useSessions, type Sessions } from "./use_sessions.js";

export interface UseArpChatOptions extends Partial<ClientOptions>, DraftOptions {
  /** An existing client. Without it and without `url`, the client of the nearest provider is used. */
  client?: ArpClient | null | undefined;
  /** Base address of the lists of chats, if it is not that of `url`. */
  apiBaseUrl?: string | undefined;
}

export interface UseArpChatReturn extends Sessions, ChatActions {
  /** Messages; each is the same object until something in it changes. */
  messages: ChatMessage[];
  /** Whether an answer is being written or expected. */
  isStreaming: boolean;
  isConnected: boolean;
  /** Tool calls of the newest turn that has any. */
  toolCards: ToolCardState[];
  runningToolCount: number;
  /** Permission requests that wait for an answer; answer with `client.grant` and `client.deny`. */
  permissions: readonly OpenPermission[];
  /** Id of the session; "" until the server has named it. */
  sessionId: string;
  capabilities: ArpCapabilities | null;
  status: Status;
  client: ArpClient | null;
}

/** Return messages, tool calls, sessions and actions of a chat. Draws nothing. */
export function useArpChat(options: UseArpChatOptions = {}, callbacks?: ArpClientCallbacks): UseArpChatReturn {
  const { client: given, apiBaseUrl, ...rest } = options;
  const shared = useArpClient();
  const isOwn = given === undefined && rest.url !== undefined;
  const own = useClient(isOwn ? (rest as ClientOptions) : null, callbacks);
  const client = isOwn ? own : given === undefined ? shared : given;
  const view = useMemo(() => (client === null ? null : new ChatView(client)), [client]);
  const status = useArpStatus(client);
  const toolCards = useCell(view?.tools ?? NO_TOOLS_CELL, NO_TOOLS);
  const otherApi = useMemo(() => (apiBaseUrl === undefined ? null : createSessionAPI(apiBaseUrl)), [apiBaseUrl]);
  const actions = useMemo(() => chatActions(() => client), [client]);
  const lists = useSessions(otherApi ?? client?.sessions ?? null, status.sessionId, actions.startNewChat);
  return {
    messages: useCell(view?.messages ?? NO_MESSAGES_CELL, NO_MESSAGES),
    isStreaming: useCell(view?.isStreaming ?? NO, false),
    isConnected: status.phase === "online",
    toolCards,
    runningToolCount: toolCards.filter((card) => card.status === "running").length,
    permissions: useCell(client?.store.permissions ?? NO_PERMISSIONS_CELL, NO_PERMISSIONS),
    sessionId: status.sessionId ?? "",
    capabilities: capabilitiesOf(status),
    status,
    client,
    ...actions,
    ...lists,
  };
}

const NO_MESSAGES: ChatMessage[] = [];
const NO_MESSAGES_CELL = fixed(NO_MESSAGES);
const NO_TOOLS: ToolCardState[] = [];
const NO_TOOLS_CELL = fixed(NO_TOOLS);
const NO_PERMISSIONS: readonly OpenPermission[] = [];
const NO_PERMISSIONS_CELL = fixed(NO_PERMISSIONS);
const NO = fixed(false);
