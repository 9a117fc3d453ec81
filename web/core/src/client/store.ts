/** What an application watches: cells over a client's screen, connection and inputs. */

import { Changes, type Cell, type Schedule } from "./cells.js";
import type { LinkState } from "../transport/driver.js";
import type {
  AgentCapabilities,
  Command,
  Component,
  ErrorPayload,
  JsonObject,
  SurfaceInfo,
} from "../protocol/generated/wire.js";
import type { Outgoing } from "./outbox.js";
import { openPermissions, type OpenPermission } from "./questions.js";
import { sameList, sameValues } from "../protocol/same.js";
import type { Screen, TurnState } from "../protocol/screen.js";

/** The connection and the session. */
export interface Status extends LinkState {
  readonly sessionId: string | null;
  /** True until the screen shows the session. */
  readonly loading: boolean;
  /** Whether what shows is still the session before, as `setSessionId` was asked to keep it. */
  readonly stale: boolean;
  /** The name of the session's agent; `undefined` until the agent side sends it. */
  readonly workflow?: string | null | undefined;
  readonly capabilities: AgentCapabilities | null;
  /** The slash commands of the app and of the session. */
  readonly commands: readonly Command[];
  /** The turn that runs, or waits for an answer; `null` if there is none. */
  readonly activeTurn: string | null;
  /** How many turns came before the first of `turnIds`; `undefined` where the agent side does not send it. */
  readonly older?: number | null | undefined;
  /** How many turns are left out before others of `turnIds`, by their ids. */
  readonly gaps?: { readonly [turnId: string]: number } | undefined;
}

/** Where the store looks. */
export interface Sources {
  screen(): Screen;
  status(): Status;
  outgoing(): readonly Outgoing[];
  /** Called when all listeners were notified. */
  flushed(): void;
}

/** The cells of one client. */
export class Store {
  readonly status: Cell<Status>;
  /** Ids of the turns, oldest first. */
  readonly turnIds: Cell<readonly string[]>;
  /** Errors that belong to no turn. */
  readonly errors: Cell<readonly ErrorPayload[]>;
  /** The surfaces besides `main` on which something shows, without popups and overlays. */
  readonly surfaceNames: Cell<readonly string[]>;
  /** The popups and overlays on which something shows; there are none without the feature `overlays`. */
  readonly popupNames: Cell<readonly string[]>;
  /** What agents share with renderers. */
  readonly sharedState: Cell<JsonObject>;
  /** Inputs that the agent side has not echoed yet. */
  readonly outgoing: Cell<readonly Outgoing[]>;
  /**
   * The permissions that wait for an answer, oldest first, without those whose answer is on its way. The
   * status of their turns does not matter: a restart of the agent side ends a turn, and leaves its questions open.
   */
  readonly permissions: Cell<readonly OpenPermission[]>;
  readonly #changes: Changes;
  readonly #sources: Sources;
  #seen: Screen;
  #permissions: readonly OpenPermission[] = [];

  constructor(sources: Sources, schedule: Schedule) {
    this.#sources = sources;
    this.#changes = new Changes(schedule, () => sources.flushed());
    this.#seen = sources.screen();
    const cell = <T>(name: string, get: () => T) => this.#changes.cell(name, get);
    this.status = cell("status", () => sources.status());
    this.turnIds = cell("turns", () => sources.screen().turnIds);
    this.errors = cell("errors", () => sources.screen().errors);
    this.surfaceNames = cell("surfaces", () => sources.screen().surfaceNames);
    this.popupNames = cell("popups", () => sources.screen().popupNames);
    this.sharedState = cell("state", () => sources.screen().sharedState);
    this.outgoing = cell("outgoing", () => sources.outgoing());
    // A turn that streams has no new permission, unless it is one of those that asked.
    this.permissions = this.derived(
      () => this.#openPermissions(),
      (name) => !name.startsWith("turn:") || sources.screen().askingTurns.includes(name.slice(5)),
    );
  }

  /** One turn; `undefined` while there is none of that id. */
  turn(id: string): Cell<TurnState | undefined> {
    return this.#changes.cell(`turn:${id}`, () => this.#sources.screen().turn(id));
  }

  /** What shows on a surface besides `main`. */
  surface(name: string): Cell<readonly Component[]> {
    return this.#changes.cell(`surface:${name}`, () => this.#sources.screen().surface(name));
  }

  /** What a surface is; `undefined` of a toplevel without a title that was only rendered to. */
  surfaceInfo(name: string): Cell<SurfaceInfo | undefined> {
    return this.#changes.cell(`info:${name}`, () => this.#sources.screen().surfaceInfo(name));
  }

  #openPermissions(): readonly OpenPermission[] {
    const { screen, outgoing, status } = this.#sources;
    const open = status().stale ? [] : openPermissions(screen(), outgoing());
    return (this.#permissions = sameList(this.#permissions, open, sameValues));
  }

  /**
   * Notifies a listener of changes, once for all that came since.
   *
   * @param dependsOn Returns whether the listener needs changes of this name: `status`, `outgoing`, or a `Key` of the
   *   screen. All of them if absent.
   */
  subscribe(listener: () => void, dependsOn: (name: string) => boolean = () => true): () => void {
    return this.#changes.subscribe("*", (changed) => {
      if ([...changed].some(dependsOn)) listener();
    });
  }

  /** Returns a cell that is computed from others; `get` returns the same object until something in it changes. */
  derived<T>(get: () => T, dependsOn: (name: string) => boolean): Cell<T> {
    return {
      get,
      subscribe: (listener) => {
        let value = get();
        return this.subscribe(() => {
          if (value !== (value = get())) listener();
        }, dependsOn);
      },
    };
  }

  /** Notifies listeners now instead of at the next frame. */
  flush(): void {
    this.#changes.flush();
  }

  /** Takes note that something changed besides the screen. */
  mark(...names: ("status" | "outgoing" | "commit")[]): void {
    this.#changes.mark(names);
  }

  /** Takes note of what changed on the screen, also if that is another one now. */
  look(): void {
    const screen = this.#sources.screen();
    this.#changes.mark(screen === this.#seen ? screen.dirty : this.#changes.names);
    this.#seen = screen;
    screen.dirty.clear();
  }
}

/**
 * The turn that runs or waits; queued turns, and those removed from the queue, follow it. One that was
 * cut off while it waited is over.
 */
export function activeTurn(screen: Screen): string | null {
  let found: string | null = null;
  const { turnIds } = screen;
  for (let at = turnIds.length - 1; at >= 0; at -= 1) {
    const id = turnIds[at] as string;
    const status = screen.status(id);
    if ((status === "running" || status === "waiting") && !screen.isFinal(id)) found = id;
    else if (status !== "queued" && status !== "cancelled") break; // one taken out of the queue is in it
  }
  return found;
}
