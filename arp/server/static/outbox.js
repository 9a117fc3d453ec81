/**
 * Inputs that the agent side has not told back yet, oldest first. Each keeps its `id` however often
 * it is sent, so it takes effect once. An item goes waiting → sent → accepted and leaves when its
 * echo comes; a lost connection puts `sent` back to `waiting`; a refusal keeps it as `refused`
 * until the user decides. What is not accepted survives a reload, except files. Source: protocol.md
 * 2.2.
 */

/** The inputs of one session. */
export class Outbox {
  items = [];
  #store;
  #key = "arp.outbox.new";

  /**
   * `store` keeps JSON values over a reload; what was written before there was a session is here at
   * once.
   */
  constructor(store) {
    this.#store = store;
    this.items = store.get(this.#key) ?? [];
  }

  /** Takes the inputs kept for a session; what was written before it had an id moves along. */
  open(sessionId) {
    const key = `arp.outbox.${sessionId}`;
    if (key === this.#key) return;
    const kept = (this.#store.get(key) ?? []).filter(({ message }) => !this.get(message.id));
    this.#store.set(this.#key, null);
    this.#key = key;
    this.items = [...kept, ...this.items];
    this.#save();
  }

  /** Adds an input; `files` are sent along by HTTP and do not survive a reload. */
  add(message, files = []) {
    const item = { message, files, phase: "waiting", error: null };
    this.items.push(item);
    this.#save();
    return item;
  }

  /** The item with this input id, if it is still here. */
  get(id) {
    return this.items.find((item) => item.message.id === id);
  }

  /** The answer to a component that is on its way; undefined when there is none. */
  answerTo(componentId) {
    return this.items.find(({ message }) => message.source_component === componentId);
  }

  /** The items to send now; they count as sent. */
  takeWaiting() {
    const waiting = this.items.filter((item) => item.phase === "waiting");
    for (const item of waiting) item.phase = "sent";
    return waiting;
  }

  /** After a lost connection: what was sent without an answer waits again. */
  rewind() {
    for (const item of this.items) {
      if (item.phase === "sent" && !item.files.length) item.phase = "waiting";
    }
  }

  /** The agent side has it; it stays to be shown until its echo comes. */
  accepted(id) {
    this.#set(id, { phase: "accepted" });
  }

  /** The agent side, or the upload, refused it. */
  refused(id, error) {
    this.#set(id, { phase: "refused", error });
  }

  /** Sends a refused item again, as a new input: the old id may be spent. */
  retry(id, freshId) {
    const item = this.get(id);
    if (item)
      Object.assign(item, {
        phase: "waiting",
        error: null,
        message: { ...item.message, id: freshId },
      });
    this.#save();
  }

  /** Takes an item out: its echo has come, or the user gave it up. */
  remove(id) {
    this.items = this.items.filter((item) => item.message.id !== id);
    this.#save();
  }

  #set(id, change) {
    const item = this.get(id);
    if (item) Object.assign(item, change);
    this.#save();
  }

  #save() {
    const unsent = this.items.filter(({ phase, files }) => phase !== "accepted" && !files.length);
    const kept = unsent.map(({ message, phase, error }) => {
      return { message, files: [], phase: phase === "sent" ? "waiting" : phase, error };
    });
    this.#store.set(this.#key, kept.length ? kept : null);
  }
}
