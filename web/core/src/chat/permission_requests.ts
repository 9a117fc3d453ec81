/**
 * The permissions that a user interface asks for: what is being edited, what was answered, and what went wrong.
 *
 * Theory of operation. A permission leaves the list when it is answered here. If the agent side refuses the answer, the
 * permission comes back with a fault, and the refused input is discarded. If it is closed instead, because another
 * screen answered first, nothing shows the fault any more, so the refusal is reported to the application.
 */

import type { ArpClient } from "../client/client.js";
import { offered } from "../client/offered.js";
import type { OpenPermission } from "../client/questions.js";
import type { ErrorPayload } from "../protocol/generated/wire.js";
import { sameList } from "../protocol/same.js";
import { readInput } from "./edited_input.js";

/** What is wrong with an answer: the agent side refused it, or the edited input is not a JSON object that can be sent. */
export type PermissionFault = ErrorPayload | "input";

export class PermissionRequests {
  #pending: readonly OpenPermission[] = [];
  #session: string | null;
  /** Ids of the inputs that answer permissions, by component. */
  readonly #answered = new Map<string, string>();
  /** Texts of inputs that are being edited, by component. */
  readonly #edits = new Map<string, string>();
  readonly #faults = new Map<string, PermissionFault>();
  /** Refusals of answers to permissions that are still open, by component. */
  readonly #refusals = new Map<string, ErrorPayload>();
  /** Ids of components that the user interface has announced. It adds and deletes them; another session begins empty. */
  readonly announced = new Set<string>();
  /**
   * Client whose permissions are listed. It may be replaced, as after a new token: what belongs to the session is kept
   * if the new client has the same session. A listener must then subscribe again and call `update`.
   */
  client: ArpClient;
  readonly #refused: (error: ErrorPayload) => void;

  /** @param refused Called with the refusal of an answer whose permission is closed. */
  constructor(client: ArpClient, refused: (error: ErrorPayload) => void = () => undefined) {
    this.client = client;
    this.#refused = refused;
    this.#session = client.sessionId;
  }

  /** The permissions to ask for, oldest first; the same list until something in it changes. */
  get pending(): readonly OpenPermission[] {
    return this.#pending;
  }

  /** Call a listener when the state may have changed, so that it calls `update`. Returns a function that stops this. */
  subscribe(listener: () => void): () => void {
    const { permissions, outgoing, status } = this.client.store;
    const stops = [permissions, outgoing, status].map((cell) => cell.subscribe(listener));
    return () => stops.forEach((stop) => stop());
  }

  /** Read the state of the client again. Returns whether something changed. */
  update(): boolean {
    const { sessionId, store, capabilities } = this.client;
    if (sessionId !== this.#session) this.#forget(sessionId);
    this.#receiveRefusals();
    const open = offered(capabilities).input ? store.permissions.get() : [];
    const isOpen = (id: string) => open.some(({ component }) => component.id === id);
    for (const [id, error] of this.#refusals) {
      if (isOpen(id)) continue;
      this.#refusals.delete(id); // another screen was first
      this.#refused(error);
    }
    const before = this.#pending;
    const pending = open.filter(({ component }) => !this.#answered.has(component.id));
    this.#pending = sameList(before, pending);
    return this.#pending !== before;
  }

  /** Return the text of an input that is being edited; `undefined` if it is not. */
  editOf(component: string): string | undefined {
    return this.#edits.get(component);
  }

  /** Return what is wrong with the last answer. */
  faultOf(component: string): PermissionFault | undefined {
    return this.#faults.get(component);
  }

  /** Record the text of an edited input. Returns whether this removed a fault. */
  edit(component: string, text: string): boolean {
    this.#edits.set(component, text);
    return this.#faults.delete(component);
  }

  /** Restore the input as the agent wrote it. */
  discardEdit(component: string): void {
    this.#edits.delete(component);
    this.#faults.delete(component);
  }

  /** Allow the call, with the edited input if there is one. Returns false, with a fault, if that cannot be sent. */
  grant({ component, permission }: OpenPermission, scope: "once" | "session"): boolean {
    const text = this.#edits.get(component.id);
    const edited = text === undefined ? undefined : readInput(text);
    if (edited === null) {
      this.#faults.set(component.id, "input");
      return false;
    }
    this.#answer(component.id, this.client.grant(component, scope, permission, edited));
    return true;
  }

  /** Deny the call. */
  deny({ component, permission }: OpenPermission, reason = ""): void {
    this.#answer(component.id, this.client.deny(component, reason, permission));
  }

  #answer(component: string, input: string): void {
    this.#faults.delete(component);
    this.#refusals.delete(component);
    this.#answered.set(component, input);
  }

  #receiveRefusals(): void {
    for (const { id, error } of this.client.store.outgoing.get()) {
      const component = error && [...this.#answered].find(([, input]) => input === id)?.[0];
      if (!component) continue;
      this.#answered.delete(component);
      this.#faults.set(component, error);
      this.#refusals.set(component, error);
      this.client.discard(id);
    }
  }

  /** Forget everything: components of another session may have the same ids, and would inherit answers and edits. */
  #forget(sessionId: string | null): void {
    for (const kept of [this.#answered, this.#edits, this.#faults, this.#refusals, this.announced]) kept.clear();
    this.#session = sessionId;
  }
}
