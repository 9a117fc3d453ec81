/** A whole chat: `<arp-chat>` with a client and custom components. */

import type { ArpClient, ArpClientCallbacks, Component, ErrorPayload, Json } from "@agent-rendering/core";
import "@agent-rendering/elements";
import type { FeedbackSource, Rating } from "@agent-rendering/elements";
import { forwardRef, useMemo, type CSSProperties, type ReactNode } from "react";
import {
  chatProperties,
  clientTheme,
  type ArpChatElement,
  type ChatAppearance,
  type DraftOptions,
} from "../../bindings/src/chat.js";
import { CHAT_FEATURES, offering } from "../../bindings/src/client_options.js";
import { ownOf } from "../../bindings/src/own_components.js";
import { useBrowser } from "./cell.js";
import { useArpContext, type ArpComponents } from "./context.js";
import { textsBy, useOwnComponents } from "./drawing.js";
import { CustomElement } from "./element.js";
import { useClient, type ClientOptions } from "./use_client.js";

export type { ArpChatElement };

export interface ArpChatProps
  extends Partial<Omit<ClientOptions, "components" | "theme" | "locale">>, ChatAppearance, DraftOptions {
  /** An existing client. Without it and without `url`, the client of the nearest provider is used. */
  client?: ArpClient | null | undefined;
  callbacks?: ArpClientCallbacks | undefined;
  /** Custom components by type; they may replace built-in ones. */
  components?: ArpComponents | undefined;
  /** Whether users can rate answers (default: if there is `onFeedback`); an object stores the ratings itself. */
  feedback?: FeedbackSource | boolean | undefined;
  /** Draws text instead of the built-in Markdown. */
  renderMarkdown?: ((content: string) => ReactNode) | undefined;
  className?: string | undefined;
  style?: CSSProperties | undefined;
  onSend?: ((text: string, files: readonly File[]) => void) | undefined;
  onSessionChange?: ((sessionId: string) => void) | undefined;
  onDone?: ((turnId: string, status: string) => void) | undefined;
  onError?: ((error: string, payload: ErrorPayload) => void) | undefined;
  onAction?: ((component: Component, name: string, payload: Json | undefined) => void) | undefined;
  /** Called when the rating of an answer was stored; `comment` is empty if there is none. */
  onFeedback?: ((turnId: string, rating: Rating["rating"], comment: string) => void) | undefined;
}

/** A chat that fills its parent. `ref` is the element, with `say`, `stop`, `draft`, `focus` and `jump`. */
export const ArpChat = forwardRef<ArpChatElement, ArpChatProps>(function ArpChat(props, ref) {
  const { client: given, callbacks, title, description, suggestions, theme } = props;
  const {
    components,
    renderMarkdown,
    className,
    style,
    onSend,
    onSessionChange,
    onDone,
    onError,
    onAction,
    onFeedback,
    feedback = onFeedback !== undefined,
    ...rest
  } = props;
  const shared = useArpContext();
  const own = useMemo(
    () => ({ ...ownOf({ ...shared.components, ...components }), ...(renderMarkdown && textsBy(renderMarkdown)) }),
    [shared.components, components, renderMarkdown],
  );
  const isOwn = given === undefined && rest.url !== undefined;
  const ownClient = useClient(isOwn ? (offering(clientOptions(rest, theme), own) as ClientOptions) : null, callbacks);
  const client = isOwn ? ownClient : given === undefined ? shared.client : given;
  const { registry, portals } = useOwnComponents(own);
  const isBrowser = useBrowser();
  return (
    <div
      className={className === undefined ? "arp-host" : `arp-host ${className}`}
      style={{ height: "100%", ...style }}
    >
      {isBrowser && client !== null ? (
        <CustomElement
          tag="arp-chat"
          elementRef={(element) => setRef(ref, element as ArpChatElement | null)}
          properties={{
            ...chatProperties(props),
            client,
            components: registry,
            feedback,
          }}
          on={{
            "arp-send": ({ detail }) => onSend?.(detail.text, detail.files),
            "arp-session": ({ detail }) => onSessionChange?.(detail.sessionId),
            "arp-done": ({ detail }) => onDone?.(detail.turnId, detail.status),
            "arp-error": ({ detail }) => onError?.(detail.error, detail.payload),
            "arp-action": ({ detail }) => onAction?.(detail.component, detail.name, detail.payload),
            "arp-feedback": ({ detail }) => onFeedback?.(detail.turnId, detail.rating, detail.comment),
          }}
        />
      ) : (
        <Shell title={title} description={description} suggestions={suggestions} />
      )}
      {portals}
    </div>
  );
});

/** Content until elements can be drawn, and for browsers without scripts. */
function Shell({ title, description, suggestions = [] }: Pick<ArpChatProps, "title" | "description" | "suggestions">) {
  return (
    <section className="arp arp-shell" aria-busy="true">
      {title !== undefined && <h2>{title}</h2>}
      {description !== undefined && <p>{description}</p>}
      {suggestions.length > 0 && (
        <ul>
          {suggestions.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function clientOptions(rest: Partial<ClientOptions>, theme: ArpChatProps["theme"]): Partial<ClientOptions> {
  const options = { features: CHAT_FEATURES, ...rest };
  const shown = clientTheme(theme);
  return shown === undefined ? options : { ...options, theme: shown };
}

function setRef<T>(ref: React.ForwardedRef<T>, value: T | null): void {
  if (typeof ref === "function") ref(value);
  else if (ref) ref.current = value;
}
