/** What every component gets besides its own data: where answers go, texts, and announcements. */

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

/** Returns texts in the reader's language. */
export type Translate = Translator;

/**
 * Draws a component of your own: a node, or a Lit template. It is called again when the component changes, for
 * each place where it is; `place` is the element around it.
 */
export type ComponentFactory = (component: Component, context: ArpContext, place: HTMLElement) => Node | TemplateResult;

/** Your own components by type. */
export type Components = ComponentRegistry<ComponentFactory>;

/** Files of an answer, by the form's field. */
export interface AnswerFile {
  readonly part: string;
  readonly file: File;
}

/** Where components are drawn. The same object until something in it changes. */
export interface ArpContext {
  /** `null` where nothing can be answered: exports, previews. */
  readonly client: ArpClient | null;
  readonly t: Translate;
  /** A BCP 47 tag. */
  readonly locale: string;
  readonly registry: Components | null;
  readonly theme: "light" | "dark";
  /** What `[2]` in the text of this turn stands for; `null` where there is no turn. */
  readonly citations: Citations | null;
  /** Whether the turn of what is drawn is still being written: unfinished marks are then completed. */
  readonly streaming: boolean;
  /** Whether `$…$` is math too; `$$…$$`, `\(…\)` and `\[…\]` always are. */
  readonly dollarMath: boolean;
  /**
   * The address of a document that shows one picture (`?src=…`) in a frame, where the page's policy lets none from
   * elsewhere in; `null` where pictures that the reader has allowed may be loaded as they are.
   */
  readonly pictureFrame: string | null;
  /** How deep in layout components; from 0. */
  readonly depth: number;
  /** Answers a question once; see the core's `answerOfValue` for the value. Returns the input's id, if there is one. */
  answer(component: Component, value: Json, files?: readonly AnswerFile[]): string | void;
  /** Declines to answer a component. Returns the input's id, if there is one. */
  decline(component: Component): string | void;
  /** Sends an action of a component. */
  action(component: Component, name: string, payload?: unknown): void;
  /** Takes note of how a component shows. */
  present(component: Component, how: Presented): void;
  /** Announces something to those who do not see the screen. */
  announce(text: string): void;
}

const ENGLISH = translator("en");

/** Makes a context; what is not given is English, light, and sends to `client`. */
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

/** The context of an element that was given none. */
export const NOWHERE = createContext();

/** Whether the agent side shows what has happened once, and takes no input. */
export function showsRecording(client: ArpClient | null): boolean {
  return !offered(client?.capabilities).input;
}

/** A registry of your own components: `{"x-acme-map": (component, context) => node}`. */
export function createComponents(initial: Record<string, ComponentFactory> = {}): Components {
  return createComponentRegistry(initial);
}

/** Own components as a registry, however they are given. */
export function componentsOf(given: Components | Record<string, ComponentFactory>): Components {
  const { has, get } = given as Components;
  return typeof has === "function" && typeof get === "function"
    ? (given as Components)
    : createComponents(given as Record<string, ComponentFactory>);
}
