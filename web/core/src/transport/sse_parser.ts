/**
 * A parser of server-sent events, by the HTML standard: lines end with CR, LF or CRLF; several `data` lines are joined;
 * comments and unknown fields are ignored; a blank line ends an event.
 */

export interface SseEvent {
  /** Name of the event; `message` unless the stream has another name. */
  readonly event: string;
  readonly data: string;
  /** The last `id` in the stream so far. */
  readonly id: string;
}

/** Parser of a stream, which may arrive in any pieces. */
export class SseParser {
  #buffer = "";
  #event = "";
  #data: string[] = [];
  #id = "";
  #isFirst = true;
  #skipLf = false;

  /** Parse some text, and return the events that it completes. */
  feed(text: string): SseEvent[] {
    if (this.#isFirst && text !== "") {
      this.#isFirst = false;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    if (text === "") return [];
    if (this.#skipLf && text.startsWith("\n")) text = text.slice(1);
    this.#skipLf = text.endsWith("\r");
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = this.#buffer + lines[0];
    this.#buffer = lines.pop() as string;
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): SseEvent[] {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return [];
  }

  #dispatch(): SseEvent[] {
    const found = { event: this.#event || "message", data: this.#data.join("\n"), id: this.#id };
    const isEmpty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return isEmpty ? [] : [found];
  }
}

/** Read a body to its end, and report each event when it is complete. */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  receive: (event: SseEvent) => void,
  alive?: () => void,
): Promise<void> {
  const parser = new SseParser();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    alive?.();
    for (const event of parser.feed(done ? decoder.decode() : decoder.decode(value, { stream: true }))) {
      receive(event);
    }
    if (done) return;
  }
}
