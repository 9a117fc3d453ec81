/** A whole chat for applications with bubbles of their own. */

import {
  createSessionAPI,
  type ArpCapabilities,
  type ArpClient,
  type ArpClientCallbacks,
  type ChatSession,
  type Component,
  type Json,
  type OpenPermission,
  type Status,
} from "@agent-rendering/core";
import { ChatView, type ChatMessage, type ToolCardState } from "@agent-rendering/core/chat";
import { useCallback, useMemo } from "react";
import { fixed, useCell } from "./cell.js";
import { capabilitiesOf, useArpClient, useArpStatus } from "./context.js";
import { useClient, type ClientOptions } from "./use_client.js";
import { useSessions } from "./use_sessions.js";

/** Options of the draft that the client finds out by itself: taken, so that code written for it compiles. */
export interface DraftOptions {
  /** @deprecated */
  chatParam?: string | undefined;
  /** @deprecated */
  sseFallbackPath?: string | undefined;
  /** @deprecated */
  hasFileUpload?: boolean | undefined;
  /** @deprecated */
  fileParam?: string | undefined;
}

export interface UseArpChatOptions extends Partial<ClientOptions>, DraftOptions {
  /** A client of your own, or without it and `url` the nearest provider's. */
  client?: ArpClient | null | undefined;
  /** Where the lists of chats are, if not where `url` is. */
  apiBaseUrl?: string | undefined;
}

export interface UseArpChatReturn {
  /** Each is the same object until something in it changes. */
  messages: ChatMessage[];
  /** An answer is being written or will be. */
  isStreaming: boolean;
  isConnected: boolean;
  /** The tools of the newest turn that used some. */
  toolCards: ToolCardState[];
  runningToolCount: number;
  /** The tools that wait for permission; answer with `client.grant` and `client.deny`. */
  permissions: readonly OpenPermission[];
  /** "" until the server has named it. */
  sessionId: string;
  capabilities: ArpCapabilities | null;
  status: Status;
  client: ArpClient | null;
  /** Sends; while there is no connection it waits, also over a reload. Returns the message's id. */
  sendMessage: (text: string, file?: File | readonly File[]) => string | null;
  /** Stops the answer. */
  stop: () => void;
  /** Answers a component that asks; see the core's `answerOfValue` for the value. */
  answer: (component: Component, value: Json) => void;
  switchSession: (sessionId: string) => Promise<void>;
  /** Begins a new chat, of an app with several agents (`status.capabilities.workflows`) with one by its name. */
  startNewChat: (workflow?: string | object) => void;
  sessions: ChatSession[];
  /** Why the list of chats could not be had. */
  sessionsError: Error | null;
  loadSessions: () => Promise<void>;
  deleteSession: (id: string) => Promise<void>;
}

/** Messages, tools, sending, sessions: what a chat is, with nothing drawn. */
export function useArpChat(options: UseArpChatOptions = {}, callbacks?: ArpClientCallbacks): UseArpChatReturn {
  const { client: given, apiBaseUrl, ...rest } = options;
  const shared = useArpClient();
  const isOwn = given === undefined && rest.url !== undefined;
  const own = useClient(isOwn ? (rest as ClientOptions) : null, callbacks);
  const client = isOwn ? own : given === undefined ? shared : given;
  const view = useMemo(() => (client === null ? null : new ChatView(client)), [client]);
  const status = useArpStatus(client);
  const toolCards = useCell(view?.tools ?? NO_TOOLS_CELL, NO_TOOLS);
  const elsewhere = useMemo(() => (apiBaseUrl === undefined ? null : createSessionAPI(apiBaseUrl)), [apiBaseUrl]);
  const startNewChat = useCallback(
    // As a handler of clicks it is given an event, which names no agent.
    (workflow?: string | object) => client?.setSessionId(null, typeof workflow === "string" ? { workflow } : {}),
    [client],
  );
  const lists = useSessions(elsewhere ?? client?.sessions ?? null, status.sessionId, startNewChat);
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
    sendMessage: useCallback((text: string, file?: File | readonly File[]) => sendTyped(client, text, file), [client]),
    stop: useCallback(() => void client?.stop(), [client]),
    answer: useCallback((component: Component, value: Json) => void client?.answer(component, value), [client]),
    switchSession: useCallback(async (id: string) => client?.setSessionId(id), [client]),
    startNewChat,
    ...lists,
  };
}

function sendTyped(client: ArpClient | null, text: string, file?: File | readonly File[]): string | null {
  const files = file === undefined ? [] : file instanceof File ? [file] : file;
  if (client === null || (text.trim() === "" && files.length === 0)) return null;
  return client.sendText(text, { files });
}

const NO_MESSAGES: ChatMessage[] = [];
const NO_MESSAGES_CELL = fixed(NO_MESSAGES);
const NO_TOOLS: ToolCardState[] = [];
const NO_TOOLS_CELL = fixed(NO_TOOLS);
const NO_PERMISSIONS: readonly OpenPermission[] = [];
const NO_PERMISSIONS_CELL = fixed(NO_PERMISSIONS);
const NO = fixed(false);
