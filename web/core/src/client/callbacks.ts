/**
 * Functions that a client calls as things happen, for programs that append to what they show. What
 * a snapshot brings is not reported by them: it is in the store. A callback that throws is
 * reported, and the next is called all the same.
 */

import { guarded } from "./cells.js";
import type { RendererConnection } from "./connection.js";
import type { ArpCapabilities, ToolRenderEvent } from "../protocol/draft_types.js";
import type {
  AgentMessage,
  Commit,
  Component,
  ErrorPayload,
  Render,
  SessionReady,
  ToolEndPayload,
  ToolProgressPayload,
} from "../protocol/generated/wire.js";

export interface ArpClientCallbacks {
  /** At every connection that has a session; `session` is `null` on a server of the draft. */
  onConnect?: (capabilities: ArpCapabilities, session: SessionReady | null) => void;
  /** A connection that had a session is over; the client comes back by itself, if it can. */
  onDisconnect?: () => void;
  /** Text of the answer, as it comes; not what the agent thinks. */
  onDelta?: (text: string, turnId: string | null) => void;
  onThinking?: (text: string, turnId: string | null) => void;
  /** A tool's name, and its arguments as a JSON string. */
  onToolStart?: (tool: string, args: string, callId: string) => void;
  /** How far a tool is; the newest replaces the one before. */
  onToolProgress?: (callId: string, progress: ToolProgressPayload) => void;
  /** `end` has the beginning of the result, where the whole is, and how long the tool ran. */
  onToolEnd?: (tool: string, ok: boolean, callId: string, error: string | null, end: ToolEndPayload) => void;
  /** One component that is shown or replaced; at its commit. */
  onRender?: (event: ToolRenderEvent, component: Component) => void;
  onError?: (error: string, payload: ErrorPayload) => void;
  /** A turn's output is complete. */
  onDone?: (turnId: string | null, commit: Commit) => void;
  /** Every message of the agent side, when it has been applied. */
  onMessage?: (message: AgentMessage) => void;
}

/** Calls the callbacks that a message is for. */
export class Calls {
  readonly #callbacks: ArpClientCallbacks;
  #isOnline = false;
  #inSnapshot = false;
  #held: Render[] = [];

  constructor(callbacks: ArpClientCallbacks) {
    this.#callbacks = callbacks;
  }

  welcome({ agent }: RendererConnection, session: SessionReady | null): void {
    const wasOnline = this.#isOnline;
    this.#isOnline = true;
    this.#inSnapshot = session?.resume === "snapshot";
    this.#held = [];
    const capabilities = { components: [], features: [], ...agent?.capabilities };
    if (!wasOnline) guarded(this.#callbacks.onConnect, capabilities, session);
  }

  offline(): void {
    this.#held = [];
    this.#inSnapshot = false;
    if (!this.#isOnline) return;
    this.#isOnline = false;
    guarded(this.#callbacks.onDisconnect);
  }

  receive(message: AgentMessage): void {
    guarded(this.#callbacks.onMessage, message);
    if (!this.#inSnapshot) this.#notify(message, (message as { turn_id?: string | null }).turn_id ?? null);
    else if (message.type === "commit") this.#inSnapshot = message.seq == null;
  }

  #notify(message: AgentMessage, turnId: string | null): void {
    const calls = this.#callbacks;
    switch (message.type) {
      case "delta": {
        const { delta, kind, target } = message.payload;
        if (kind === "thinking") guarded(calls.onThinking, delta, turnId);
        else if (target == null || target.includes("/")) guarded(calls.onDelta, delta, turnId);
        break;
      }
      case "tool_start": {
        const { tool, args, call_id: callId = "" } = message.payload;
        guarded(calls.onToolStart, tool, args, callId);
        break;
      }
      case "tool_progress":
        guarded(calls.onToolProgress, message.payload.call_id, message.payload);
        break;
      case "tool_end": {
        const { tool, ok, call_id: callId = "", error = null } = message.payload;
        guarded(calls.onToolEnd, tool, ok, callId, error, message.payload);
        break;
      }
      case "render":
        this.#held.push(message);
        break;
      case "commit": {
        const held = this.#held;
        this.#held = [];
        for (const { components, tool_name: tool } of held) {
          for (const component of components) {
            const { type, props } = component;
            guarded(calls.onRender, { tool: tool ?? "", component: type, props }, component);
          }
        }
        if (message.final) guarded(calls.onDone, turnId, message);
        break;
      }
      case "error":
        guarded(calls.onError, message.payload.error, message.payload);
        break;
    }
  }
}
