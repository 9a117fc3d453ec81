/** A whole chat: `<arp-chat>` with a client, and components of the application's own in its places. */

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
    /** A client of your own, or without it and `url` the nearest provider's. */
    client: { type: Object as PropType<ArpClient | null>, ...absent },
    callbacks: { type: Object as PropType<ArpClientCallbacks>, ...absent },
    autoConnect: { type: Boolean, default: true },
    /** The other options of a client. */
    options: { type: Object as PropType<Partial<ClientOptions>>, ...absent },
    /** Of the welcome; the server's if absent. */
    title: { type: String, ...absent },
    description: { type: String, ...absent },
    suggestions: { type: Array as PropType<readonly string[]>, ...absent },
    /** `system` (the default, also `auto`) follows the reader's. */
    theme: { type: String as PropType<Theme>, ...absent },
    /** Any CSS colour; text on it follows. */
    accentColor: { type: String, ...absent },
    /** Address of a picture of this page's own server, or a short text. */
    logo: { type: String, ...absent },
    /** Beside what the agent says; as `logo`. */
    avatar: { type: String, ...absent },
    /** Other keys than ours: `{stop: "Control+.", previous: null}`. */
    keys: { type: Object as PropType<Partial<ChatKeys>>, ...absent },
    /** Your own components by type, also in place of ours. */
    components: { type: Object as PropType<ArpComponents>, ...absent },
    locale: { type: String, ...absent },
    /** Texts in place of ours. */
    strings: { type: Object as PropType<Partial<Strings>>, ...absent },
    /** Of the message box. */
    placeholder: { type: String, ...absent },
    /** Whether readers rate answers (default: if something listens to `feedback`); an object keeps the ratings in place of the server. */
    feedback: { type: [Boolean, Object] as PropType<FeedbackSource | boolean>, ...absent },
    /** How somebody signs in whom the server does not let in. */
    signIn: { type: Object as PropType<SignIn | null>, ...absent },
    /** Shows what tools do. */
    showActivityPanel: { type: Boolean, default: true },
    // Options of the draft that the client finds out by itself.
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
    const made = useClient(
      () => (isOwn() ? (offering(clientOptions(props), own.value) as ClientOptions) : null),
      props.callbacks,
    );
    const client = computed(() => (isOwn() ? made.value : props.client === undefined ? shared.value : props.client));
    const { registry, teleports } = useOwnComponents(() => own.value);
    const element = shallowRef<ArpChatElement | null>(null);
    const isBrowser = useBrowser();
    const isHeard = getCurrentInstance()?.vnode.props?.onFeedback !== undefined;
    const properties = computed(() => ({
      ...chatProperties(props),
      client: client.value,
      feedback: props.feedback ?? isHeard,
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
    const taken = (node: HTMLElement | null) => (element.value = node as ArpChatElement | null);
    return () =>
      h("div", { class: "arp-host", style: { height: "100%" } }, [
        isBrowser.value && client.value !== null
          ? h(CustomElement, { key: "chat", tag: "arp-chat", properties: properties.value, taken, ...on })
          : shell(props),
        ...teleports(),
      ]);
  },
});

/** What is there until elements can be drawn, and for readers without scripts. */
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
