/** `<arp-rating>`: the reader's rating of an answer, with an optional comment. Loaded if the chat has feedback. */

import { html, nothing, type PropertyValues } from "lit";

import { CellController } from "../../base/cell_controller.js";
import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { visible } from "../../base/values.js";
import { icon } from "../icons.js";

export interface Rating {
  /** `none` means that there is no rating, or that it was withdrawn. */
  readonly rating: "up" | "down" | "none";
  readonly comment?: string;
}

/** Storage of ratings. */
export interface FeedbackSource {
  /** Return the rating of a turn; `null` if there is none. */
  of(turnId: string): Promise<Rating | null>;
  /** Replace the rating of a turn and its comment. Rejects if the rating was not stored. */
  give(turnId: string, rating: Rating): Promise<void>;
  /** Call a listener when ratings may have changed; return a function that stops it. If absent, each is read once. */
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
  /** Whether the field for a comment is open. */
  declare protected asks: boolean;
  // While the field is open nothing is read: a comment that is being written must stay.
  readonly #changes = new CellController(this, () => this.asks || void this.#read());
  /** Number of the newest read or change. The results of older ones are outdated and ignored. */
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
      // The known rating stays.
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

  /** Return a button that opens the field: with the comment, or for a first comment. */
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

  /** Close the field with Escape. Elsewhere in the chat, Escape stops the running turn. */
  #key(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation();
    event.preventDefault();
    this.asks = false;
    void this.#focus("button:not([aria-pressed])");
  }

  /** Open the field with the newest comment, and the cursor at the end. */
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

  /** Give a thumb; the same thumb again withdraws it. The other thumb keeps the comment and opens it for a change. */
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

  /** Store a comment; an empty one removes the comment. */
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
      if (given === this.#newest) this.given = before; // a newer change must not be reverted
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
