/** Options and actions of a chat. */

import type { ArpClient, Component, Json } from "@agent-rendering/core";
import type { Strings } from "@agent-rendering/core/strings";
import type { ChatKeys, SignIn } from "@agent-rendering/elements";

/** The `<arp-chat>` element, as a ref returns it. */
export interface ArpChatElement extends HTMLElement {
  readonly activeClient: ArpClient | null;
  /** Send a message as if the user had typed it. */
  say(text: string, files?: readonly File[]): void;
  stop(): void;
  /** Put a text into the message box. */
  draft(text: string): void;
  /** Scroll to the newest message. */
  jump(): void;
}

/** Options of the draft that have no effect, because the client gets these values from the server. */
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

/** A theme; `system` and `auto` follow the setting of the user's system. */
export type Theme = "light" | "dark" | "system" | "auto";

/** Appearance and texts of a chat. */
export interface ChatAppearance {
  /** Title of the welcome; the server's if absent. */
  title?: string | undefined;
  description?: string | undefined;
  /** Suggestions of the welcome; the server's if absent. */
  suggestions?: readonly string[] | undefined;
  /** Theme (default: `system`). */
  theme?: Theme | undefined;
  /** Accent, any CSS colour. The colour of text on it is chosen for contrast. */
  accentColor?: string | undefined;
  locale?: string | undefined;
  /** Texts that replace the built-in ones. */
  strings?: Partial<Strings> | undefined;
  /** Placeholder of the message box. */
  placeholder?: string | undefined;
  /** Address of a picture on this page's own server, or a short text. */
  logo?: string | undefined;
  /** Picture beside the agent's messages; the same kinds of values as `logo`. */
  avatar?: string | undefined;
  /** Keys that replace the default ones, such as `{stop: "Control+.", previous: null}`. */
  keys?: Partial<ChatKeys> | undefined;
  /** Way to sign in, for users that the server refuses. */
  signIn?: SignIn | null | undefined;
  /** Whether tool calls and thinking are shown (default: true). */
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

/** Return the theme to report to the server; `undefined` if it depends on the user's system. */
export function clientTheme(theme: Theme | undefined): "light" | "dark" | undefined {
  return theme === "light" || theme === "dark" ? theme : undefined;
}

/** Actions for applications that draw their own message bubbles. */
export interface ChatActions {
  /** Send a message and return its id. Without a connection the message waits; it survives a reload. */
  sendMessage: (text: string, file?: File | readonly File[]) => string | null;
  /** Stop the answer. */
  stop: () => void;
  /** Answer a question; see `answerOfValue` in the core for the value. */
  answer: (component: Component, value: Json) => void;
  switchSession: (sessionId: string) => Promise<void>;
  /** Begin a new chat; if the app has several agents (`status.capabilities.workflows`), with the agent of this name. */
  startNewChat: (workflow?: string | object) => void;
}

/** Return actions that use the client which `current` returns at the time of the call. */
export function chatActions(current: () => ArpClient | null): ChatActions {
  return {
    sendMessage: (text, file) => sendTyped(current(), text, file),
    stop: () => void current()?.stop(),
    answer: (component, value) => void current()?.answer(component, value),
    switchSession: async (sessionId) => current()?.setSessionId(sessionId),
    // Used as a click handler, this receives the event, which is not the name of an agent.
    startNewChat: (workflow) => current()?.setSessionId(null, typeof workflow === "string" ? { workflow } : {}),
  };
}

/** Send a text with files; an empty message is not sent. */
export function sendTyped(client: ArpClient | null, text: string, file?: File | readonly File[]): string | null {
  const files = file === undefined ? [] : file instanceof File ? [file] : file;
  if (client === null || (text.trim() === "" && files.length === 0)) return null;
  return client.sendText(text, { files });
}

/** Keys of the texts for the states of a tool. */
export const TOOL_STATE_TEXTS = { running: "toolRunning", done: "toolDone", failed: "toolFailed" } as const;
