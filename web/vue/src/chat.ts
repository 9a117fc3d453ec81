/** A whole chat: `<arp-chat>` with a client and custom components. */

import type { ArpClient, ArpClientCallbacks, Component, ErrorPayload, Json } from "@agent-rendering/core";
import type { Strings } from "@agent-rendering/core/strings";
import "@agent-rendering/elements";
import type { ChatKeys, FeedbackSource, Rating, SignIn } from "@agent-rendering/elements";
import { computed, defineComponent, getCurrentInstance, h, shallowRef, toValue, type PropType } from "vue";
import {
  chatProperties,
  clientTheme,
  type ArpChatElement,
  type ChatAppearance,
  type Theme,
} from "../../bindings/src/chat.js";
import { CHAT_FEATURES, offering } from "../../bindings/src/client_options.js";
import { ownOf } from "../../bindings/src/own_components.js";
import { useOwnComponents } from "./drawing.js";
import { CustomElement, useBrowser } from "./element.js";
import { useArpClient, useComponents, type ArpComponents } from "./provide.js";
import { useClient, type ClientOptions } from "./use_client.js";

export type { ArpChatElement };

const absent = { default: undefined } as const;

/** A chat that fills its parent. A template ref has `say`, `stop`, `draft`, `focus`, `jump` and `element`. */
export const ArpChat = defineComponent({
  name: "ArpChat",
  props: {
    url: { type: String, ...absent },
    sessionId: { type: String as PropType<string | null>, ...absent },
    token: { type: [String, Function] as PropType<ClientOptions["token"]>, ...absent },
    /** An existing client. Without it and without `url`, the client of the nearest provider is used. */
    client: { type: Object as PropType<ArpClient | null>, ...absent },
    callbacks: { type: Object as PropType<ArpClientCallbacks>, ...absent },
    autoConnect: { type: Boolean, default: true },
    /** Further options of the client. */
    options: { type: Object as PropType<Partial<ClientOptions>>, ...absent },
    /** Title of the welcome; the server's if absent. */
    title: { type: String, ...absent },
    description: { type: String, ...absent },
    suggestions: { type: Array as PropType<readonly string[]>, ...absent },
    /** Theme; `system` (the default) and `auto` follow the setting of the user's system. */
    theme: { type: String as PropType<Theme>, ...absent },
    /** Accent, any CSS colour. The colour of text on it is chosen for contrast. */
    accentColor: { type: String, ...absent },
    /** Address of a picture on this page's own server, or a short text. */
    logo: { type: String, ...absent },
    /** Picture beside the agent's messages; the same kinds of values as `logo`. */
    avatar: { type: String, ...absent },
    /** Keys that replace the default ones, such as `{stop: "Control+.", previous: null}`. */
    keys: { type: Object as PropType<Partial<ChatKeys>>, ...absent },
    /** Custom components by type; they may replace built-in ones. */
    components: { type: Object as PropType<ArpComponents>, ...absent },
    locale: { type: String, ...absent },
    /** Texts that replace the built-in ones. */
    strings: { type: Object as PropType<Partial<Strings>>, ...absent },
    /** Placeholder of the message box. */
    placeholder: { type: String, ...absent },
    /** Whether users can rate answers (default: if `feedback` has a listener); an object stores the ratings itself. */
    feedback: { type: [Boolean, Object] as PropType<FeedbackSource | boolean>, ...absent },
    /** Way to sign in, for users that the server refuses. */
    signIn: { type: Object as PropType<SignIn | null>, ...absent },
    /** Whether tool calls and thinking are shown. */
    showActivityPanel: { type: Boolean, default: true },
    // Options of the draft that have no effect, because the client gets these values from the server.
    apiBaseUrl: { type: String, ...absent },
    chatParam: { type: String, ...absent },
    sseFallbackPath: { type: String, ...absent },
    hasFileUpload: { type: Boolean, default: false },
    fileParam: { type: String, ...absent },
  },
  emits: {
    send: (_text: string, _files: readonly File[]) => true,
    "session-change": (_sessionId: string) => true,
    done: (_turnId: string, _status: string) => true,
    error: (_error: string, _payload: ErrorPayload) => true,
    action: (_component: Component, _name: string, _payload: Json | undefined) => true,
    feedback: (_turnId: string, _rating: Rating["rating"], _comment: string) => true,
  },
  setup(props, { emit, expose }) {
    const shared = useArpClient();
    const components = useComponents(() => props.components);
    const own = computed(() => ownOf(components.value));
    const isOwn = () => props.client === undefined && props.url !== undefined;
    const ownClient = useClient(
      () => (isOwn() ? (offering(clientOptions(props), own.value) as ClientOptions) : null),
      props.callbacks,
    );
    const client = computed(() =>
      isOwn() ? ownClient.value : props.client === undefined ? shared.value : props.client,
    );
    const { registry, teleports } = useOwnComponents(() => own.value);
    const element = shallowRef<ArpChatElement | null>(null);
    const isBrowser = useBrowser();
    const hasFeedbackListener = getCurrentInstance()?.vnode.props?.onFeedback !== undefined;
    const properties = computed(() => ({
      ...chatProperties(props),
      client: client.value,
      feedback: props.feedback ?? hasFeedbackListener,
      components: registry.value,
    }));
    expose({
      element,
      say: (text: string, files?: readonly File[]) => element.value?.say(text, files),
      stop: () => element.value?.stop(),
      draft: (text: string) => element.value?.draft(text),
      focus: () => element.value?.focus(),
      jump: () => element.value?.jump(),
    });
    const on = {
      onArpSend: ({ detail }: CustomEvent) => emit("send", detail.text, detail.files),
      onArpSession: ({ detail }: CustomEvent) => emit("session-change", detail.sessionId),
      onArpDone: ({ detail }: CustomEvent) => emit("done", detail.turnId, detail.status),
      onArpError: ({ detail }: CustomEvent) => emit("error", detail.error, detail.payload),
      onArpFeedback: ({ detail }: CustomEvent) => emit("feedback", detail.turnId, detail.rating, detail.comment),
      onArpAction: ({ detail }: CustomEvent) => emit("action", detail.component, detail.name, detail.payload),
    };
    const elementRef = (node: HTMLElement | null) => (element.value = node as ArpChatElement | null);
    return () =>
      h("div", { class: "arp-host", style: { height: "100%" } }, [
        isBrowser.value && client.value !== null
          ? h(CustomElement, { key: "chat", tag: "arp-chat", properties: properties.value, elementRef, ...on })
          : shell(props),
        ...teleports(),
      ]);
  },
});

/** Content until elements can be drawn, and for browsers without scripts. */
function shell({ title, description, suggestions = [] }: ChatAppearance) {
  return h("section", { key: "shell", class: "arp arp-shell", "aria-busy": "true" }, [
    title === undefined ? null : h("h2", title),
    description === undefined ? null : h("p", description),
    suggestions.length === 0
      ? null
      : h(
          "ul",
          suggestions.map((text) => h("li", { key: text }, text)),
        ),
  ]);
}

interface ChatClientProps {
  readonly url?: string | undefined;
  readonly sessionId?: string | null | undefined;
  readonly token?: ClientOptions["token"];
  readonly autoConnect: boolean;
  readonly options?: Partial<ClientOptions> | undefined;
  readonly locale?: string | undefined;
  readonly theme?: Theme | undefined;
}

function clientOptions(props: ChatClientProps): Partial<ClientOptions> {
  const { theme, locale } = props;
  return {
    features: CHAT_FEATURES,
    ...props.options,
    url: toValue(props.url) as string,
    sessionId: () => props.sessionId,
    token: () => (typeof props.token === "function" ? props.token() : (props.token ?? null)),
    autoConnect: props.autoConnect,
    locale,
    theme: clientTheme(theme),
  };
}
