/** Options and actions of a chat. */

import type { ArpClient, Component, Json } from "@agent-rendering/core";
import type { Strings } from "@agent-rendering/core/strings";
import type { ChatKeys, SignIn } from "@agent-rendering/elements";

/** The `<arp-chat>` element, which a ref holds. */
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

/** Options of the draft without an effect: the client finds out these values itself. */
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

/** A theme; `system` and `auto` follow the reader's settings. */
export type Theme = "light" | "dark" | "system" | "auto";

/** How a chat looks and what it says. */
export interface ChatAppearance {
  /** Title of the welcome; the server's if absent. */
  title?: string | undefined;
  description?: string | undefined;
  /** Suggestions of the welcome; the server's if absent. */
  suggestions?: readonly string[] | undefined;
  /** `system` is the default. */
  theme?: Theme | undefined;
  /** Any CSS colour; text on it follows. */
  accentColor?: string | undefined;
  locale?: string | undefined;
  /** Texts in place of ours. */
  strings?: Partial<Strings> | undefined;
  /** Placeholder of the message box. */
  placeholder?: string | undefined;
  /** Address of a picture of this page's own server, or a short text. */
  logo?: string | undefined;
  /** Picture beside the agent's messages; as `logo`. */
  avatar?: string | undefined;
  /** Other keys than ours: `{stop: "Control+.", previous: null}`. */
  keys?: Partial<ChatKeys> | undefined;
  /** How a user signs in whom the server does not let in. */
  signIn?: SignIn | null | undefined;
  /** Shows what tools do (default: true). */
  showActivityPanel?: boolean | undefined;
}

/** Return the properties of `<arp-chat>` for an appearance. */
export function chatProperties(given: ChatAppearance): { readonly [property: string]: unknown } {
  const { title, description, suggestions, theme, accentColor, locale, strings, placeholder } = given;
  const { logo, avatar, keys, signIn, showActivityPanel } = given;
  return {
    heading: title,
    description,
    suggestions,
    theme: theme === "auto" ? "system" : theme,
    accent: accentColor,
    locale,
    strings,
    placeholder,
    logo,
    avatar,
    keys,
    signIn,
    showActivity: showActivityPanel,
  };
}

/** Return a theme for the client, which knows no other than these two. */
export function clientTheme(theme: Theme | undefined): "light" | "dark" | undefined {
  return theme === "light" || theme === "dark" ? theme : undefined;
}

/** What an application with message bubbles of its own calls. */
export interface ChatActions {
  /** Sends; while there is no connection it waits, also over a reload. Returns the message's id. */
  sendMessage: (text: string, file?: File | readonly File[]) => string | null;
  /** Stops the answer. */
  stop: () => void;
  /** Answers a component that asks; see the core's `answerOfValue` for the value. */
  answer: (component: Component, value: Json) => void;
  switchSession: (sessionId: string) => Promise<void>;
  /** Begins a new chat, of an app with several agents (`status.capabilities.workflows`) with one by its name. */
  startNewChat: (workflow?: string | object) => void;
}

/** Return the actions of the client that `current` returns when they are called. */
export function chatActions(current: () => ArpClient | null): ChatActions {
  return {
    sendMessage: (text, file) => sendTyped(current(), text, file),
    stop: () => void current()?.stop(),
    answer: (component, value) => void current()?.answer(component, value),
    switchSession: async (sessionId) => current()?.setSessionId(sessionId),
    // A handler of clicks passes its event, which names no agent.
    startNewChat: (workflow) => current()?.setSessionId(null, typeof workflow === "string" ? { workflow } : {}),
  };
}

/** Send a text with files; an empty message is not sent. */
export function sendTyped(client: ArpClient | null, text: string, file?: File | readonly File[]): string | null {
  const files = file === undefined ? [] : file instanceof File ? [file] : file;
  if (client === null || (text.trim() === "" && files.length === 0)) return null;
  return client.sendText(text, { files });
}

/** Name of the text that says a tool's state. */
export const TOOL_STATE_TEXTS = { running: "toolRunning", done: "toolDone", failed: "toolFailed" } as const;
