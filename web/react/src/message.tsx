/** One turn, or one message in the draft's form, drawn with `<arp-message>`. */

import type { ArpClient, ErrorPayload, ToolRenderEvent, TurnState } from "@agent-rendering/core";
import type { MessagePart } from "@agent-rendering/core/chat";
import type { Strings } from "@agent-rendering/core/strings";
import "@agent-rendering/elements";
import { memo, useId, useMemo, type ReactElement, type ReactNode } from "react";
import { turnOfMessage } from "../../bindings/src/message.js";
import { asText, ownOf } from "../../bindings/src/own_components.js";
import { useBrowser } from "./cell.js";
import { useArpContext, type ArpComponents } from "./context.js";
import { textsBy, useOwnComponents } from "./drawing.js";
import { CustomElement } from "./element.js";
import { useElementContext } from "./words.js";

export interface ArpMessageProps {
  /** A turn, as `useArpTurn` returns it. */
  turn?: TurnState | undefined;
  // Alternatively the fields of a message, as `useArpChat` returns it: `<ArpMessage {...message} />`.
  id?: string;
  role?: "user" | "assistant";
  content?: string;
  file?: string | undefined;
  uiEvents?: ToolRenderEvent[] | undefined;
  parts?: readonly MessagePart[] | undefined;
  status?: TurnState["status"] | undefined;
  error?: ErrorPayload | undefined;
  /** Whether its questions can no longer be answered. */
  restored?: boolean | undefined;
  /** Client; that of the nearest provider if absent. */
  client?: ArpClient | null | undefined;
  components?: ArpComponents | undefined;
  theme?: "light" | "dark" | "system" | "auto" | undefined;
  locale?: string | undefined;
  strings?: Partial<Strings> | undefined;
  /** Draws text instead of the built-in Markdown. */
  renderMarkdown?: ((content: string) => ReactNode) | undefined;
  /** Picture beside the agent's message: an address on this page's own server, or a short text. */
  avatar?: string | undefined;
  /** Receives answers as texts, if there is no client. */
  onInput?: ((text: string) => void) | undefined;
}

/** Draws one message. It is rendered again only when its own data changes. */
export const ArpMessage = memo(function ArpMessage(props: ArpMessageProps): ReactElement {
  const {
    turn: given,
    client,
    components,
    theme,
    locale,
    strings,
    restored = false,
    renderMarkdown,
    avatar = "",
    onInput,
  } = props;
  const { id, role = "assistant", content = "", file, uiEvents, parts, status, error } = props;
  const shared = useArpContext();
  const fallbackId = useId();
  const turn = useMemo(() => {
    if (given !== undefined) return given;
    return turnOfMessage({ role, content, file, uiEvents, parts, status, error }, id ?? fallbackId);
  }, [given, id, fallbackId, role, content, file, uiEvents, parts, status, error]);
  const own = useMemo(
    () => ({ ...ownOf({ ...shared.components, ...components }), ...(renderMarkdown && textsBy(renderMarkdown)) }),
    [shared.components, components, renderMarkdown],
  );
  const { registry, portals } = useOwnComponents(own);
  const activeClient = client === undefined ? shared.client : client;
  const answer = useMemo(
    () => (activeClient === null && onInput ? asText(onInput) : undefined),
    [activeClient, onInput],
  );
  const context = useElementContext({ client: activeClient, registry, locale, strings, theme, answer });
  const isBrowser = useBrowser();
  return (
    <div className={`arp-message-host arp-message--${role}`}>
      {isBrowser ? (
        <CustomElement
          tag="arp-message"
          properties={{ turn, client: activeClient, context, avatar, readonly: restored || given === undefined }}
        />
      ) : (
        <p className="arp-shell">{content}</p>
      )}
      {portals}
    </div>
  );
});
