/**
 * What changes in the list of chats, as it happens: lists in several tabs agree. A stream that
 * ends is opened again, after a random part of 1, 2, 4, 8, 16 s. Nothing is reported of what happened
 * in between: a list is requested again in `opened`. A page that nobody looks at holds no
 * stream: a browser has six connections to a server for all its tabs. Source: server.md, "Chats".
 */

import type { ChatListener, ChatRow } from "./session_types.js";
import { readEvents } from "../transport/sse_parser.js";

type Request = (path: string, init?: RequestInit) => Promise<Response>;

const MOST_STEPS = 4;

/** Watches until the signal says otherwise. */
export async function watchChats(request: Request, listener: ChatListener, signal: AbortSignal): Promise<void> {
  for (let step = 0; !signal.aborted; step = Math.min(step + 1, MOST_STEPS)) {
    await change(signal, () => !isHidden());
    const seen = new AbortController();
    const ended = AbortSignal.any([signal, seen.signal]);
    void change(ended, isHidden).then(() => seen.abort());
    try {
      const response = await request("/_api/chat-events", { cache: "no-store", signal: ended });
      listener.opened?.();
      step = 0;
      await readEvents(response.body as ReadableStream<Uint8Array>, ({ event, data }) => {
        if (ended.aborted) return;
        if (event === "chat") listener.chat?.(JSON.parse(data) as ChatRow);
        else if (event === "removed") listener.removed?.((JSON.parse(data) as { id: string }).id);
      });
    } catch {
      // It is opened again below, unless nobody wants it any more.
    }
    const wasHidden = seen.signal.aborted;
    seen.abort();
    if (signal.aborted) return;
    listener.closed?.();
    if (!wasHidden) await pause(1000 * 2 ** step * Math.random(), signal);
  }
}

const isHidden = () => globalThis.document?.visibilityState === "hidden";

/** Waits until the page shows, or is hidden, as one wants it; or until the signal says otherwise. */
function change(signal: AbortSignal, isSo: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    if (isSo() || signal.aborted) return resolve();
    const done = new AbortController();
    const look = () => {
      if (!isSo() && !signal.aborted) return;
      done.abort();
      resolve();
    };
    globalThis.document?.addEventListener("visibilitychange", look, { signal: done.signal });
    signal.addEventListener("abort", look, { signal: done.signal });
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
