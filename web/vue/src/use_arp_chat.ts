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
import { computed, toValue, type MaybeRefOrGetter, type Ref, type ShallowRef } from "vue";
import { fixed, useCell } from "./cell.js";
import { capabilitiesOf, useArpClient, useArpStatus } from "./provide.js";
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
  client?: MaybeRefOrGetter<ArpClient | null | undefined>;
  /** Where the lists of chats are, if not where `url` is. */
  apiBaseUrl?: string | undefined;
}

export interface UseArpChatReturn {
  /** Each is the same object until something in it changes. */
  messages: Readonly<ShallowRef<ChatMessage[]>>;
  /** An answer is being written or will be. */
  isStreaming: Readonly<Ref<boolean>>;
  isConnected: Readonly<Ref<boolean>>;
  /** The tools of the newest turn that used some. */
  toolCards: Readonly<ShallowRef<ToolCardState[]>>;
  runningToolCount: Readonly<Ref<number>>;
  /** The tools that wait for permission; answer with `client.grant` and `client.deny`. */
  permissions: Readonly<ShallowRef<readonly OpenPermission[]>>;
  /** "" until the server has named it. */
  sessionId: Readonly<Ref<string>>;
  capabilities: Readonly<Ref<ArpCapabilities | null>>;
  status: Readonly<ShallowRef<Status>>;
  client: Readonly<Ref<ArpClient | null>>;
  sessions: Readonly<ShallowRef<ChatSession[]>>;
  /** Why the list of chats could not be had. */
  sessionsError: Readonly<ShallowRef<Error | null>>;
  /** Sends; while there is no connection it waits, also over a reload. Returns the message's id. */
  sendMessage: (text: string, file?: File | readonly File[]) => string | null;
  /** Stops the answer. */
  stop: () => void;
  /** Answers a component that asks; see the core's `answerOfValue` for the value. */
  answer: (component: Component, value: Json) => void;
  switchSession: (id: string) => Promise<void>;
  /** Begins a new chat, of an app with several agents (`status.capabilities.workflows`) with one by its name. */
  startNewChat: (workflow?: string | object) => void;
  loadSessions: () => Promise<void>;
  deleteSession: (id: string) => Promise<void>;
}

/** Messages, tools, sending, sessions: what a chat is, with nothing drawn. */
export function useArpChat(options: UseArpChatOptions = {}, callbacks?: ArpClientCallbacks): UseArpChatReturn {
  const shared = useArpClient();
  const isOwn = () => toValue(options.client) === undefined && toValue(options.url) !== undefined;
  const own = useClient(() => (isOwn() ? clientOptions(options) : null), callbacks);
  const client = computed(() => {
    if (isOwn()) return own.value;
    const given = toValue(options.client);
    return given === undefined ? shared.value : given;
  });
  const view = computed(() => client.value && new ChatView(client.value));
  const status = useArpStatus(client);
  const toolCards = useCell(() => view.value?.tools ?? NO_TOOLS);
  // As a handler of clicks it is given an event, which names no agent.
  const startNewChat = (workflow?: string | object) =>
    client.value?.setSessionId(null, typeof workflow === "string" ? { workflow } : {});
  const api = computed(() => {
    return options.apiBaseUrl === undefined ? (client.value?.sessions ?? null) : createSessionAPI(options.apiBaseUrl);
  });
  return {
    messages: useCell(() => view.value?.messages ?? NO_MESSAGES),
    isStreaming: useCell(() => view.value?.isStreaming ?? NO),
    isConnected: computed(() => status.value.phase === "online"),
    toolCards,
    runningToolCount: computed(() => toolCards.value.filter((card) => card.status === "running").length),
    permissions: useCell(() => client.value?.store.permissions ?? NO_PERMISSIONS),
    sessionId: computed(() => status.value.sessionId ?? ""),
    capabilities: computed(() => capabilitiesOf(status.value)),
    status,
    client,
    sendMessage: (text, file) => sendTyped(client.value, text, file),
    stop: () => void client.value?.stop(),
    answer: (component, value) => void client.value?.answer(component, value),
    switchSession: async (id) => client.value?.setSessionId(id),
    startNewChat,
    ...useSessions(api, () => status.value.sessionId, startNewChat),
  };
}

/** The options that are the client's; read each time, so that props are followed. */
function clientOptions({ client: _, apiBaseUrl: __, ...rest }: UseArpChatOptions): ClientOptions {
  return rest as ClientOptions;
}

function sendTyped(client: ArpClient | null, text: string, file?: File | readonly File[]): string | null {
  const files = file === undefined ? [] : file instanceof File ? [file] : file;
  if (client === null || (text.trim() === "" && files.length === 0)) return null;
  return client.sendText(text, { files });
}

const NO_MESSAGES = fixed<ChatMessage[]>([]);
const NO_TOOLS = fixed<ToolCardState[]>([]);
const NO_PERMISSIONS = fixed<readonly OpenPermission[]>([]);
const NO = fixed(false);
