/**
 * The page: brings connection, screen, outbox and views together. What happens flows one way: a
 * message changes the screen, the screen gives an effect, the effect changes the outbox or the
 * connection, and the next animation frame draws everything that is new.
 */

import { Store, endpoints, keepToken, newId, pageFor, readPage, tabStorage } from "./address.js";
import { Announcer } from "./announce.js";
import { Answers } from "./answers.js";
import { SUPPORTED } from "./components.js";
import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { Outbox } from "./outbox.js";
import { Screen } from "./screen.js";
import { Follow } from "./scroll.js";
import { Surroundings } from "./surroundings.js";
import { Transcript } from "./transcript.js";
import { UploadFailed, upload } from "./upload.js";

const FEATURES = [
  "streaming",
  "input",
  "resume",
  "file-upload",
  "thinking",
  "batch",
  "patch-append",
];
const TURN_LINES = {
  completed: "Answer complete",
  failed: "The answer failed",
  cancelled: "Stopped",
  waiting: "Waiting for your answer",
};

class Page {
  store = new Store(tabStorage());
  urls = endpoints(document.baseURI);
  screen = new Screen();
  outbox = new Outbox(this.store);
  answers = new Answers(this, this.outbox);
  #drawing = false;

  constructor() {
    this.asked = readPage(location.href);
    this.token = keepToken(this.store, this.asked.token);
    history.replaceState(null, "", pageFor(location.href, this.asked.sessionId));
    this.transcript = new Transcript(at("log"), this);
    this.composer = new Composer(at("composer"), this, this.store);
    this.announcer = new Announcer(at("status"), at("spoken"));
    this.around = new Surroundings(this);
    this.follow = new Follow(at("scroller"), at("column"), () => this.around.drawJump());
    this.connection = new Connection({
      url: this.urls.socket,
      hello: () => this.#hello(),
      onMessage: (message) => this.#receive(message),
      onPhase: () => this.#phaseChanged(),
    });
    if (this.asked.sessionId) this.#keepFor(this.asked.sessionId);
  }

  start() {
    this.around.listen();
    this.around.loadTitle();
    this.connection.connect();
    if (!matchMedia("(pointer: coarse)").matches) this.composer.focus();
  }

  // -- what views ask of the page ---------------------------------------------------------------

  find = (id) => (id == null ? undefined : this.screen.find(id));
  online = () => this.connection.phase === "online";
  focusComposer = () => this.composer.focus();
  notice = (text) => this.around.notice(text);

  /** Sends what the user wrote, with the files that go along. */
  say = (text, files = []) => {
    const parts = files.map((file) => ({ part: "file", file }));
    const data = { ...(text && { text }) };
    this.submit({ input_type: files.length ? "file" : "text", data }, parts);
    this.follow.jump();
  };

  /** Puts an input into the outbox and sends it as soon as it can go. */
  submit(input, files = []) {
    const surface = input.source_component && this.screen.surfaceOf(input.source_component);
    const where = surface && surface !== "main" ? { surface } : {};
    this.outbox.add({ v: 1, type: "input", id: newId(), ...input, ...where }, files);
    this.#flush();
    if (input.source_component) this.screen.touch(input.source_component);
  }

  /** Stops the running turn. Not kept for later: by then another turn may run. */
  stop = () => {
    const data = { action: "arp.cancel" };
    const message = {
      v: 1,
      type: "input",
      id: newId(),
      session_id: this.screen.sessionId,
      input_type: "action",
      data,
    };
    if (!this.connection.send(message))
      this.notice("Not connected: the agent could not be told to stop.");
  };

  retry = (id) => {
    this.outbox.retry(id, newId());
    this.#flush();
  };

  remove = (id) => {
    this.outbox.remove(id);
    this.draw();
    this.composer.focus();
  };

  lastSaid = () =>
    [...this.screen.turns.values()]
      .flatMap((turn) => turn.inputs)
      .findLast((input) => input.input_type === "text")?.data.text ?? "";

  // -- connection -------------------------------------------------------------------------------

  #hello() {
    const sessionId = this.screen.sessionId ?? this.asked.sessionId;
    return {
      v: 1,
      type: "hello",
      ...(sessionId && { session_id: sessionId }),
      capabilities: { components: SUPPORTED, features: FEATURES },
      ...(this.screen.place && { resume: this.screen.place }),
      viewport: { width: innerWidth, height: innerHeight },
      locale: navigator.language,
      time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
      ...(this.token && { token: this.token }),
    };
  }

  #phaseChanged() {
    if (!this.online()) {
      this.screen.dropPending();
      this.outbox.rewind();
    }
    this.around.phaseChanged(this.connection);
    for (const { message } of this.outbox.items)
      if (message.source_component) this.screen.touch(message.source_component);
    this.draw();
  }

  #receive(message) {
    if (message.type === "hello")
      this.composer.maxBytes =
        message.capabilities?.limits?.max_upload_bytes ?? this.composer.maxBytes;
    try {
      const effect = this.screen.receive(message);
      if (effect) this.#effects[effect.kind]?.(effect);
    } catch (error) {
      // one bad message must not end the page; what it was is in the console
      console.warn(`arp: a ${message.type} message could not be applied:`, error);
    }
    this.draw();
  }

  #effects = {
    ready: () => this.#welcome(),
    loading: () => this.#welcome(),
    accepted: ({ id, turnId }) => this.#accepted(id, turnId),
    told: ({ id }) => this.#settle(id),
    refused: ({ id, payload }) => this.#refused(id, payload),
    notice: ({ payload }) => this.#complain(payload),
    failed: ({ payload }) => this.announcer.say(`Error: ${payload.error}`),
    turn: ({ turn }) => this.#announce(turn),
    resync: ({ reason }) => this.#resync(reason),
  };

  #welcome() {
    const { sessionId } = this.screen;
    this.#keepFor(sessionId);
    history.replaceState(null, "", pageFor(location.href, sessionId));
    this.#flush();
  }

  /** From now on what is unsent or unfinished is remembered for this session. */
  #keepFor(sessionId) {
    this.outbox.open(sessionId);
    this.composer.open(sessionId);
  }

  /**
   * An error about nothing in particular; before the session is there it means that we are not
   * wanted.
   */
  #complain(payload) {
    if (!this.online() && !payload.retryable) this.connection.refuse();
    this.around.complain(payload);
  }

  #resync(reason) {
    console.warn(`arp: asking for a snapshot: ${reason}`);
    this.screen.forgetPlace();
    this.connection.restart();
  }

  // -- inputs -----------------------------------------------------------------------------------

  #flush() {
    const sessionId = this.screen.sessionId;
    if (this.online() && sessionId !== null) {
      for (const item of this.outbox.takeWaiting())
        this.#send(item, { ...item.message, session_id: sessionId });
    }
    this.draw();
  }

  #send(item, message) {
    if (item.files.length) this.#upload(item, message);
    else this.connection.send(message);
  }

  async #upload({ files }, message) {
    try {
      const { turn_id: turnId } = await upload(this.urls.input, this.token, message, files);
      this.#accepted(message.id, turnId);
    } catch (error) {
      if (!(error instanceof UploadFailed)) throw error;
      this.#refused(message.id, error.payload);
    }
    this.draw();
  }

  #accepted(id, turnId) {
    this.outbox.accepted(id);
    const known = this.screen.turns.get(turnId)?.inputs.some((input) => input.id === id);
    if (known) this.#settle(id);
  }

  #settle(id) {
    const source = this.outbox.get(id)?.message.source_component;
    this.outbox.remove(id);
    if (source) this.screen.touch(source);
  }

  #refused(id, payload) {
    const item = this.outbox.get(id);
    const source = item?.message.source_component;
    if (source) {
      this.answers.refuse(source, payload);
      this.#settle(id);
    } else if (item) {
      this.outbox.refused(id, payload);
    } else {
      this.around.complain(payload);
    }
    this.announcer.say(`Not sent: ${payload.error}`);
  }

  // -- drawing ----------------------------------------------------------------------------------

  /** Draws in the next animation frame, once. */
  draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.transcript.draw(this.screen, this.outbox);
      const busy = [...this.screen.turns.values()].some(
        (turn) => turn.open && turn.status !== "queued",
      );
      this.composer.setBusy(busy && this.online());
      this.around.draw();
      this.follow.keep();
    });
  }

  #announce(turn) {
    if (this.screen.loading) return;
    if (turn.status === "running") this.announcer.working();
    const line = TURN_LINES[turn.status];
    if (line)
      requestAnimationFrame(() =>
        this.announcer.finish(line, turn.open ? "" : this.transcript.textOf(turn.id)),
      );
  }
}

function at(id) {
  return document.getElementById(id);
}

new Page().start();
