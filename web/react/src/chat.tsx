/** A whole chat: `<arp-chat>` with a client, and components of the application's own in its places. */

import type { ArpClient, ArpClientCallbacks, Component, ErrorPayload, Json } from "@agent-rendering/core";
import type { Strings } from "@agent-rendering/core/strings";
import "@agent-rendering/elements";
import type { ChatKeys, FeedbackSource, Rating, SignIn } from "@agent-rendering/elements";
import { forwardRef, useMemo, type CSSProperties, type ReactNode } from "react";
import { useBrowser } from "./cell.js";
import { offering, useArpContext, type ArpComponents } from "./context.js";
import { ownOf, textsBy, useOwnComponents } from "./drawing.js";
import { CustomElement } from "./element.js";
import type { DraftOptions } from "./use_arp_chat.js";
import { useClient, type ClientOptions } from "./use_client.js";

/** What `ref` gives: the element, with what it can do. */
export interface ArpChatElement extends HTMLElement {
  readonly activeClient: ArpClient | null;
  /** Sends something as if it were typed. */
  say(text: string, files?: readonly File[]): void;
  stop(): void;
  /** Puts a text into the message box. */
  draft(text: string): void;
  /** Goes to the newest message. */
  jump(): void;
}

export interface ArpChatProps extends Partial<Omit<ClientOptions, "components" | "theme">>, DraftOptions {
  /** A client of your own, or without it and `url` the nearest provider's. */
  client?: ArpClient | null | undefined;
  callbacks?: ArpClientCallbacks | undefined;
  /** Of the welcome; the server's if absent. */
  title?: string | undefined;
  description?: string | undefined;
  /** What the welcome offers to say; the server's if absent. */
  suggestions?: readonly string[] | undefined;
  /** `system` (the default, also `auto`) follows the reader's. */
  theme?: "light" | "dark" | "system" | "auto" | undefined;
  /** Any CSS colour; text on it follows. */
  accentColor?: string | undefined;
  /** Your own components by type, also in place of ours. */
  components?: ArpComponents | undefined;
  /** Texts in place of ours. */
  strings?: Partial<Strings> | undefined;
  /** Of the message box. */
  placeholder?: string | undefined;
  /** Address of a picture of this page's own server, or a short text. */
  logo?: string | undefined;
  /** Beside what the agent says; as `logo`. */
  avatar?: string | undefined;
  /** Other keys than ours: `{stop: "Control+.", previous: null}`. */
  keys?: Partial<ChatKeys> | undefined;
  /** Whether readers rate answers (default: if there is `onFeedback`); an object keeps the ratings in place of the server. */
  feedback?: FeedbackSource | boolean | undefined;
  /** How somebody signs in whom the server does not let in. */
  signIn?: SignIn | null | undefined;
  /** Shows what tools do (default: true). */
  showActivityPanel?: boolean | undefined;
  /** Draws text in place of our Markdown. */
  renderMarkdown?: ((content: string) => ReactNode) | undefined;
  className?: string | undefined;
  style?: CSSProperties | undefined;
  onSend?: ((text: string, files: readonly File[]) => void) | undefined;
  onSessionChange?: ((sessionId: string) => void) | undefined;
  onDone?: ((turnId: string, status: string) => void) | undefined;
  onError?: ((error: string, payload: ErrorPayload) => void) | undefined;
  onAction?: ((component: Component, name: string, payload: Json | undefined) => void) | undefined;
  /** An answer was rated, and the server has it; the comment is empty if there is none. */
  onFeedback?: ((turnId: string, rating: Rating["rating"], comment: string) => void) | undefined;
}

/** A chat that fills its parent. `ref` gives the element: `say`, `stop`, `draft`, `focus`, `jump`. */
export const ArpChat = forwardRef<ArpChatElement, ArpChatProps>(function ArpChat(props, ref) {
  const {
    client: given,
    callbacks,
    title,
    description,
    suggestions,
    theme,
    accentColor,
    strings,
    placeholder,
    logo,
    avatar,
    keys,
    signIn,
    showActivityPanel,
  } = props;
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
  const made = useClient(isOwn ? offering(clientOptions(rest, theme), own) : null, callbacks);
  const client = isOwn ? made : given === undefined ? shared.client : given;
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
          taken={(element) => give(ref, element as ArpChatElement | null)}
          properties={{
            client,
            heading: title,
            description,
            suggestions,
            theme: theme === "auto" ? "system" : theme,
            accent: accentColor,
            components: registry,
            locale: rest.locale,
            strings,
            placeholder,
            logo,
            avatar,
            keys,
            feedback,
            signIn,
            showActivity: showActivityPanel,
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

/** What is there until elements can be drawn, and for readers without scripts. */
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
  const options = { features: ["line-pause", "overlays"], ...rest };
  return theme === "light" || theme === "dark" ? { ...options, theme } : options;
}

function give<T>(ref: React.ForwardedRef<T>, value: T | null): void {
  if (typeof ref === "function") ref(value);
  else if (ref) ref.current = value;
}
