/** The cells that an application observes: a client's screen, connection and inputs. */

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

/** State of the connection and the session. */
export interface Status extends LinkState {
  readonly sessionId: string | null;
  /** True until the screen shows the session. */
  readonly loading: boolean;
  /** Whether the screen still shows the previous session, because `setSessionId` was called with `keep`. */
  readonly stale: boolean;
  /** Name of the session's agent; `undefined` until the agent side sends it. */
  readonly workflow?: string | null | undefined;
  readonly capabilities: AgentCapabilities | null;
  /** Slash commands of the app and the session. */
  readonly commands: readonly Command[];
  /** Id of the turn that runs or waits for an answer; `null` if there is none. */
  readonly activeTurn: string | null;
  /** Number of turns before the first of `turnIds`; `undefined` if the agent side does not send it. */
  readonly older?: number | null | undefined;
  /** Number of turns that are left out before a turn of `turnIds`, by the id of that turn. */
  readonly gaps?: { readonly [turnId: string]: number } | undefined;
}

/** Functions that the store reads its values from. */
export interface Sources {
  screen(): Screen;
  status(): Status;
  outgoing(): readonly Outgoing[];
  /** Called when all listeners are notified. */
  flushed(): void;
}

/** The cells of one client. */
export class Store {
  readonly status: Cell<Status>;
  /** Ids of the turns, oldest first. */
  readonly turnIds: Cell<readonly string[]>;
  /** Errors that belong to no turn. */
  readonly errors: Cell<readonly ErrorPayload[]>;
  /** Names of the non-empty surfaces besides `main`, without popups and overlays. */
  readonly surfaceNames: Cell<readonly string[]>;
  /** Names of the non-empty popups and overlays; there are none without the feature `overlays`. */
  readonly popupNames: Cell<readonly string[]>;
  /** State that agents share with renderers. */
  readonly sharedState: Cell<JsonObject>;
  /** Inputs that the agent side has not echoed yet. */
  readonly outgoing: Cell<readonly Outgoing[]>;
  /**
   * Permissions that wait for an answer, oldest first; a permission with an answer in `outgoing` is left out. The
   * status of the turn does not matter: a restart of the agent side ends a turn but leaves its questions open.
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
    // A turn with a permission request is in `askingTurns`. Other turns are skipped, because a streaming turn changes
    // in every frame.
    this.permissions = this.derived(
      () => this.#openPermissions(),
      (name) => !name.startsWith("turn:") || sources.screen().askingTurns.includes(name.slice(5)),
    );
  }

  /** Return the cell of one turn; its value is `undefined` while no turn has this id. */
  turn(id: string): Cell<TurnState | undefined> {
    return this.#changes.cell(`turn:${id}`, () => this.#sources.screen().turn(id));
  }

  /** Return the cell of the components on a surface other than `main`. */
  surface(name: string): Cell<readonly Component[]> {
    return this.#changes.cell(`surface:${name}`, () => this.#sources.screen().surface(name));
  }

  /** Return the cell of a surface's description; its value is `undefined` for a surface that was only rendered to. */
  surfaceInfo(name: string): Cell<SurfaceInfo | undefined> {
    return this.#changes.cell(`info:${name}`, () => this.#sources.screen().surfaceInfo(name));
  }

  #openPermissions(): readonly OpenPermission[] {
    const { screen, outgoing, status } = this.#sources;
    const open = status().stale ? [] : openPermissions(screen(), outgoing());
    return (this.#permissions = sameList(this.#permissions, open, sameValues));
  }

  /**
   * Call a listener once for all changes since the last call; return a function that unsubscribes it.
   *
   * @param dependsOn Returns whether the listener depends on a changed name: `status`, `outgoing`, or a `Key` of the
   *   screen. Every change calls the listener if it is absent.
   */
  subscribe(listener: () => void, dependsOn: (name: string) => boolean = () => true): () => void {
    return this.#changes.subscribe("*", (changed) => {
      if ([...changed].some(dependsOn)) listener();
    });
  }

  /** Return a cell that is computed from others. `get` must return the same object until something in it changes. */
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

  /** Notify listeners now instead of in the next frame. */
  flush(): void {
    this.#changes.flush();
  }

  /** Record a change of something other than the screen. */
  mark(...names: ("status" | "outgoing" | "commit")[]): void {
    this.#changes.mark(names);
  }

  /** Record what changed on the screen. If the screen was replaced, record a change of every cell. */
  look(): void {
    const screen = this.#sources.screen();
    this.#changes.mark(screen === this.#seen ? screen.dirty : this.#changes.names);
    this.#seen = screen;
    screen.dirty.clear();
  }
}

/**
 * Return the id of the turn that runs or waits. Only queued turns, and turns removed from the queue, can follow
 * it. A waiting turn that is final was cut off and has ended.
 */
export function activeTurn(screen: Screen): string | null {
  let found: string | null = null;
  const { turnIds } = screen;
  for (let at = turnIds.length - 1; at >= 0; at -= 1) {
    const id = turnIds[at] as string;
    const status = screen.status(id);
    if ((status === "running" || status === "waiting") && !screen.isFinal(id)) found = id;
    else if (status !== "queued" && status !== "cancelled") break; // `cancelled` includes turns removed from the queue
  }
  return found;
}
