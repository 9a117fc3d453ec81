/** The box where the user writes: text, files, send and stop. */

import { fileSize } from "./bubble.js";
import { el, icon } from "./dom.js";

/** Guards, drafts and files of the message box. */
export class Composer {
  busy = false;
  maxBytes = 25 * 2 ** 20;
  #files = [];
  #draftKey = "arp.draft.new";

  /**
   * `form` is the element with the box; `page` gives say(text, files), stop(), notice(text),
   * lastSaid(); `store` keeps the draft over a reload.
   */
  constructor(form, page, store) {
    Object.assign(this, { form, page, store });
    this.box = form.querySelector("textarea");
    this.send = form.querySelector(".send");
    this.stop = form.querySelector(".stop");
    this.list = form.querySelector(".files");
    this.picker = form.querySelector("input[type=file]");
    this.#listen();
    this.#write(store.get(this.#draftKey) ?? "");
  }

  /**
   * Shows the draft of a session; what was being written before the session had an id moves along.
   */
  open(sessionId) {
    const key = `arp.draft.${sessionId}`;
    if (key === this.#draftKey) return;
    const draft = this.box.value || this.store.get(key) || "";
    this.store.set(this.#draftKey, null);
    this.#draftKey = key;
    this.#write(draft);
  }

  /** Shows the stop button while an agent works. */
  setBusy(busy) {
    this.busy = busy;
    if (!busy && document.activeElement === this.stop) this.box.focus();
    this.stop.hidden = !busy;
  }

  focus() {
    this.box.focus({ preventScroll: true });
  }

  #listen() {
    this.form.addEventListener("submit", (event) => this.#submit(event));
    this.stop.addEventListener("click", () => this.page.stop());
    this.box.addEventListener("input", () => this.#write(this.box.value));
    this.box.addEventListener("keydown", (event) => this.#key(event));
    this.form.querySelector(".attach").addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => this.#attach([...this.picker.files]));
    this.box.addEventListener("paste", (event) => this.#take(event, event.clipboardData?.files));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => this.#take(event, event.dataTransfer?.files));
  }

  #key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey) this.#submit(event);
    else if (event.key === "Escape" && this.busy) this.page.stop();
    else if (event.key === "ArrowUp" && !this.box.value && this.page.lastSaid()) {
      event.preventDefault();
      this.#write(this.page.lastSaid());
    }
  }

  #submit(event) {
    event.preventDefault();
    const text = this.box.value.trim();
    if (!text && !this.#files.length) return;
    this.page.say(text, this.#files);
    this.#files = [];
    this.#drawFiles();
    this.#write("");
    this.focus();
  }

  #write(text) {
    if (this.box.value !== text) this.box.value = text;
    this.store.set(this.#draftKey, text || null);
    this.box.style.height = "auto";
    this.box.style.height = `${this.box.scrollHeight}px`;
    this.#ready();
  }

  #ready() {
    this.send.disabled = !this.box.value.trim() && !this.#files.length;
  }

  #take(event, files) {
    if (!files?.length) return;
    event.preventDefault();
    this.#attach([...files]);
  }

  #attach(files) {
    const fits = files.filter((file) => file.size <= this.maxBytes);
    for (const file of files) {
      if (!fits.includes(file))
        this.page.notice(`${file.name} is too large: at most ${fileSize(this.maxBytes)}.`);
    }
    this.#files = [...this.#files, ...fits];
    this.picker.value = "";
    this.#drawFiles();
    this.#ready();
    this.focus();
  }

  #drawFiles() {
    this.list.hidden = this.#files.length === 0;
    this.list.replaceChildren(
      ...this.#files.map((file, index) =>
        el(
          "li",
          {},
          icon("file"),
          el("span", { dir: "auto" }, file.name),
          el("span", { class: "hint" }, fileSize(file.size)),
          el(
            "button",
            {
              "type": "button",
              "aria-label": `Remove ${file.name}`,
              "onclick": () => this.#detach(index),
            },
            icon("close"),
          ),
        ),
      ),
    );
  }

  #detach(index) {
    this.#files = this.#files.toSpliced(index, 1);
    this.#drawFiles();
    this.#ready();
    this.focus();
  }
}
