/** The environment of a component: where its answers go, texts in the reader's language, and announcements. */

import {
  createComponentRegistry,
  offered,
  type ArpClient,
  type Component,
  type ComponentRegistry,
  type Json,
  type Presented,
} from "@agent-rendering/core";
import { translator, type Translator } from "@agent-rendering/core/strings";
import type { TemplateResult } from "lit";

import type { Citations } from "./citations.js";

/** Function that returns texts in the reader's language. */
export type Translate = Translator;

/**
 * Draws a component of your own and returns a node or a Lit template. It is called for each place that shows the
 * component, and again when the component changes. `place` is the element around it.
 */
export type ComponentFactory = (component: Component, context: ArpContext, place: HTMLElement) => Node | TemplateResult;

/** Registry of your own components, by type. */
export type Components = ComponentRegistry<ComponentFactory>;

/** One file of an answer. `part` names the field of the form that it belongs to. */
export interface AnswerFile {
  readonly part: string;
  readonly file: File;
}

/** Environment of the components of one place: the same object until something in it changes. */
export interface ArpContext {
  /** `null` in exports and previews, where nothing can be answered. */
  readonly client: ArpClient | null;
  readonly t: Translate;
  /** A BCP 47 tag. */
  readonly locale: string;
  readonly registry: Components | null;
  readonly theme: "light" | "dark";
  /** Sources that `[2]` in the text of this turn can refer to; `null` outside of a turn. */
  readonly citations: Citations | null;
  /** Whether the turn is still being written; unfinished Markdown is then completed. */
  readonly streaming: boolean;
  /** Whether `$…$` is also math; `$$…$$`, `\(…\)` and `\[…\]` always are. */
  readonly dollarMath: boolean;
  /**
   * Address of a document that shows one picture (`?src=…`) in a frame, for pages that forbid pictures from other
   * hosts by their content security policy. `null` if pictures that the reader has allowed are loaded directly.
   */
  readonly pictureFrame: string | null;
  /** Number of layout components around the component. */
  readonly depth: number;
  /** Answer a question, once; the core's `answerOfValue` describes the value. Returns the id of the input, if any. */
  answer(component: Component, value: Json, files?: readonly AnswerFile[]): string | void;
  /** Decline to answer a question. Returns the id of the input, if any. */
  decline(component: Component): string | void;
  /** Send an action of a component. */
  action(component: Component, name: string, payload?: unknown): void;
  /** Record how a component is shown, for the agent. */
  present(component: Component, how: Presented): void;
  /** Announce a text to screen readers. */
  announce(text: string): void;
}

const ENGLISH = translator("en");

/** Create a context. By default it is English and light, and its answers and actions go to `client`. */
export function createContext(given: Partial<ArpContext> = {}): ArpContext {
  const client = given.client ?? null;
  const t = given.t ?? ENGLISH;
  return {
    registry: null,
    theme: "light",
    citations: null,
    streaming: false,
    dollarMath: false,
    pictureFrame: null,
    depth: 0,
    answer: (component, value, files = []) => client?.answer(component, value, { files }),
    decline: (component) => client?.decline(component),
    action: (component, name, payload) => void client?.sendAction(component.id, name, payload),
    present: ({ id }, how) => client?.presented(id, how),
    announce: () => undefined,
    ...given,
    client,
    t,
    locale: given.locale ?? t.locale,
  };
}

/** Context of an element before one is set. */
export const NOWHERE = createContext();

/** Return whether the agent side replays a recording and accepts no input. */
export function showsRecording(client: ArpClient | null): boolean {
  return !offered(client?.capabilities).input;
}

/** Create a registry of your own components, such as `{"x-acme-map": (component, context) => node}`. */
export function createComponents(initial: Record<string, ComponentFactory> = {}): Components {
  return createComponentRegistry(initial);
}

/** Return own components as a registry; a plain object becomes a new registry. */
export function componentsOf(given: Components | Record<string, ComponentFactory>): Components {
  const { has, get } = given as Components;
  return typeof has === "function" && typeof get === "function"
    ? (given as Components)
    : createComponents(given as Record<string, ComponentFactory>);
}
