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
import { computed, toValue, type MaybeRefOrGetter, type Ref, type ShallowRef } from "vue";
import { fixed } from "../../bindings/src/cells.js";
import { chatActions, type ChatActions, type DraftOptions } from "../../bindings/src/chat.js";
import { capabilitiesOf } from "../../bindings/src/status.js";
import { useCell } from "./cell.js";
import { useArpClient, useArpStatus } from "./provide.js";
import { useClient, type ClientOptions } from "./use_client.js";
import { useSessions, type Sessions } from "./use_sessions.js";

export interface UseArpChatOptions extends Partial<ClientOptions>, DraftOptions {
  /** An existing client. Without it and without `url`, the client of the nearest provider is used. */
  client?: MaybeRefOrGetter<ArpClient | null | undefined>;
  /** Base address of the lists of chats, if it is not that of `url`. */
  apiBaseUrl?: string | undefined;
}

export interface UseArpChatReturn extends Sessions, ChatActions {
  /** Messages; each is the same object until something in it changes. */
  messages: Readonly<ShallowRef<ChatMessage[]>>;
  /** Whether an answer is being written or expected. */
  isStreaming: Readonly<Ref<boolean>>;
  isConnected: Readonly<Ref<boolean>>;
  /** Tool calls of the newest turn that has any. */
  toolCards: Readonly<ShallowRef<ToolCardState[]>>;
  runningToolCount: Readonly<Ref<number>>;
  /** Permission requests that wait for an answer; answer with `client.grant` and `client.deny`. */
  permissions: Readonly<ShallowRef<readonly OpenPermission[]>>;
  /** Id of the session; "" until the server has named it. */
  sessionId: Readonly<Ref<string>>;
  capabilities: Readonly<Ref<ArpCapabilities | null>>;
  status: Readonly<ShallowRef<Status>>;
  client: Readonly<Ref<ArpClient | null>>;
}

/** Return messages, tool calls, sessions and actions of a chat. Draws nothing. */
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
  const actions = chatActions(() => client.value);
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
    ...actions,
    ...useSessions(api, () => status.value.sessionId, actions.startNewChat),
  };
}

/** Return the options of the client. They are read each time, so that changes of reactive options take effect. */
function clientOptions({ client: _, apiBaseUrl: __, ...rest }: UseArpChatOptions): ClientOptions {
  return rest as ClientOptions;
}

const NO_MESSAGES = fixed<ChatMessage[]>([]);
const NO_TOOLS = fixed<ToolCardState[]>([]);
const NO_PERMISSIONS = fixed<readonly OpenPermission[]>([]);
const NO = fixed(false);
