/**
 * Functions that a client calls when a message arrives, for programs that append to their output. The content
 * of a snapshot calls only `onMessage`: it is in the store. If a callback throws, the error is reported and the
 * following callbacks are still called.
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
  /** Called when a connection has a session; `session` is `null` on a server of the draft. */
  onConnect?: (capabilities: ArpCapabilities, session: SessionReady | null) => void;
  /** Called when a connection that had a session has ended; the client reconnects by itself, if it can. */
  onDisconnect?: () => void;
  /** Called with streamed text of the answer, without the agent's thinking. */
  onDelta?: (text: string, turnId: string | null) => void;
  onThinking?: (text: string, turnId: string | null) => void;
  /** Called with the name of a tool that starts, and its arguments as a JSON string. */
  onToolStart?: (tool: string, args: string, callId: string) => void;
  /** Called with the progress of a tool; it replaces the previous one. */
  onToolProgress?: (callId: string, progress: ToolProgressPayload) => void;
  /** `end` has the beginning of the result, a reference to the full result, and the duration. */
  onToolEnd?: (tool: string, ok: boolean, callId: string, error: string | null, end: ToolEndPayload) => void;
  /** Called for each component that a commit adds or replaces. */
  onRender?: (event: ToolRenderEvent, component: Component) => void;
  onError?: (error: string, payload: ErrorPayload) => void;
  /** Called when the output of a turn is complete. */
  onDone?: (turnId: string | null, commit: Commit) => void;
  /** Called for every message of the agent side, after it is applied; also for those of a snapshot. */
  onMessage?: (message: AgentMessage) => void;
}

/** Calls the callbacks for each message. */
export class Calls {
  readonly #callbacks: ArpClientCallbacks;
  #isOnline = false;
  #inSnapshot = false;
  /** Renders that wait for their commit. */
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
    // Deltas of a snapshot would append the whole conversation again. Its last commit is the one with a `seq`.
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
