/** `<arp-rating>`: what the reader thinks of an answer: a thumb, and then a comment who wants. Loaded where feedback is taken. */

import { html, nothing, type PropertyValues } from "lit";

import { CellController } from "../../base/cell_controller.js";
import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { visible } from "../../base/values.js";
import { icon } from "../icons.js";

export interface Rating {
  /** `none`: it was taken back. */
  readonly rating: "up" | "down" | "none";
  readonly comment?: string;
}

/** Where ratings are kept. */
export interface FeedbackSource {
  /** The rating of a turn; `null`: there is none. */
  of(turnId: string): Promise<Rating | null>;
  /** Keeps a rating in place of the one before, whose comment ends too. It fails if the server does not take it. */
  give(turnId: string, rating: Rating): Promise<void>;
  /** Calls a listener when ratings may be others; returns what ends that. Absent: each is read once. */
  watch?(listener: () => void): () => void;
}

const MOST_CHARACTERS = 2000;
const NONE: Rating = { rating: "none" };

export class ArpRating extends ArpElement {
  static override properties = {
    turnId: { attribute: false },
    source: { attribute: false },
    context: { attribute: false },
    given: { state: true },
    asks: { state: true },
  };

  declare turnId: string;
  declare source: FeedbackSource | null;
  declare context: ArpContext;
  declare protected given: Rating;
  /** Whether there is a box for a comment. */
  declare protected asks: boolean;
  readonly #changes = new CellController(this, () => this.asks || void this.#read()); // what somebody is writing stays
  /** Counts what was asked and given: an answer that is older than the newest of these says nothing. */
  #newest = 0;

  constructor() {
    super();
    this.turnId = "";
    this.source = null;
    this.context = createContext();
    this.given = NONE;
    this.asks = false;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("turnId") && !changed.has("source")) return;
    if (this.hasUpdated) {
      this.given = NONE;
      this.asks = false;
    }
    if (changed.has("source")) {
      const { source } = this;
      this.#changes.observe(...(source?.watch ? [{ subscribe: source.watch.bind(source) }] : []));
    }
    void this.#read();
  }

  async #read(): Promise<void> {
    const asked = ++this.#newest;
    try {
      const found = await this.source?.of(this.turnId);
      if (asked === this.#newest) this.given = found ?? NONE;
    } catch {
      // What is known stays.
    }
  }

  protected override render(): unknown {
    const { t } = this.context;
    const thumb = (rating: "up" | "down", label: string) =>
      html`<button type="button" class="arp-icon-button" aria-pressed=${this.given.rating === rating ? "true" : "false"} aria-label=${label} title=${label} @click=${() => void this.#rate(rating)}>
        ${icon(rating === "up" ? "thumbUp" : "thumbDown")}
      </button>`;
    return html`${thumb("up", t("rateUp"))}${thumb("down", t("rateDown"))}${this.asks ? this.#box() : this.#comment()}`;
  }

  /** The comment, which opens the box; or what opens it for a first one. */
  #comment(): unknown {
    const { t } = this.context;
    const { rating, comment = "" } = this.given;
    if (rating === "none") return nothing;
    const shown = visible(comment);
    const label = comment === "" ? t("rateComment") : t("rateEdit", { comment: shown });
    return html`<button type="button" class=${comment === "" ? "arp-icon-button" : "arp-button arp-quiet arp-commented"} aria-label=${label} title=${label} @click=${() => void this.#open()}>
      ${icon("edit")}${comment === "" ? nothing : html`<span dir="auto">${shown}</span>`}
    </button>`;
  }

  #box(): unknown {
    const { t } = this.context;
    const { comment = "" } = this.given;
    return html`<form class="arp-comment" @submit=${(event: SubmitEvent) => void this.#submit(event)} @keydown=${(event: KeyboardEvent) => this.#key(event)}>
      <input name="comment" maxlength=${MOST_CHARACTERS} dir="auto" aria-label=${t("rateWhy")} placeholder=${t("rateWhy")} autocomplete="off" value=${comment || nothing} />
      <button type="submit" class="arp-button arp-soft arp-small">${t(comment === "" ? "send" : "save")}</button>
      ${comment === "" ? nothing : html`<button type="button" class="arp-icon-button" aria-label=${t("rateRemove")} title=${t("rateRemove")} @click=${() => void this.#say("")}>${icon("trash")}</button>`}
    </form>`;
  }

  /** Escape closes the box and nothing else: it would stop a turn. */
  #key(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation();
    event.preventDefault();
    this.asks = false;
    void this.#focus("button:not([aria-pressed])");
  }

  /** Opens the box with the newest comment, and the cursor at its end. */
  async #open(): Promise<void> {
    await this.#read();
    this.asks = this.given.rating !== "none";
    const box = await this.#focus("input");
    if (box instanceof HTMLInputElement) box.setSelectionRange(box.value.length, box.value.length);
  }

  async #focus(wanted: string): Promise<HTMLElement | null> {
    await this.updateComplete;
    const found = this.querySelector<HTMLElement>(wanted);
    found?.focus();
    return found;
  }

  /** Takes a thumb, or takes it back. The other thumb keeps the comment, in a box where it can be changed. */
  async #rate(rating: "up" | "down"): Promise<void> {
    const { comment } = this.given;
    const next = this.given.rating === rating ? NONE : { rating, ...(comment && { comment }) };
    if (!(await this.#give(next))) return;
    this.asks = next !== NONE;
    await this.updateComplete;
    this.querySelector("form")?.scrollIntoView({ block: "nearest" });
  }

  async #submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const comment = new FormData(event.target as HTMLFormElement).get("comment");
    await this.#say(typeof comment === "string" ? comment.trim() : "");
  }

  /** Keeps a comment; an empty one removes what is there. */
  async #say(comment: string): Promise<void> {
    const { rating, comment: before = "" } = this.given;
    if (comment !== before && !(await this.#give({ rating, ...(comment && { comment }) }))) return;
    this.asks = false;
    await this.#focus("button:not([aria-pressed])");
  }

  async #give(rating: Rating): Promise<boolean> {
    const before = this.given;
    const given = ++this.#newest;
    this.given = rating;
    try {
      await this.source?.give(this.turnId, rating);
    } catch {
      if (given === this.#newest) this.given = before;
      this.context.announce(this.context.t("rateFailed"));
      return false;
    }
    this.dispatchEvent(
      new CustomEvent("arp-feedback", {
        bubbles: true,
        composed: true,
        detail: { turnId: this.turnId, comment: "", ...rating },
      }),
    );
    if (rating.rating !== "none") this.context.announce(this.context.t("rateThanks"));
    return true;
  }
}

define("arp-rating", ArpRating);
