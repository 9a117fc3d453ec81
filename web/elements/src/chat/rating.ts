/** `<arp-rating>`: what the reader thinks of an answer: a thumb, and then a comment who wants. Loaded where feedback is taken. */

import { html, nothing, type PropertyValues } from "lit";

import { createContext, type ArpContext } from "../context.js";
import { ArpElement, define } from "../element.js";
import { icon } from "./icons.js";

export interface Rating {
  /** `none`: it was taken back. */
  readonly rating: "up" | "down" | "none";
  readonly comment?: string;
}

/** Where ratings are kept. */
export interface FeedbackSource {
  /** The rating of a turn; `null`: there is none. */
  of(turnId: string): Promise<Rating | null>;
  /** Keeps a rating. It fails if the server does not take it. */
  give(turnId: string, rating: Rating): Promise<void>;
}

const MOST_CHARACTERS = 2000;

export class ArpRating extends ArpElement {
  static override properties = { turnId: { attribute: false }, source: { attribute: false }, context: { attribute: false }, given: { state: true }, asks: { state: true } };

  declare turnId: string;
  declare source: FeedbackSource | null;
  declare context: ArpContext;
  declare protected given: Rating["rating"];
  /** Whether there is a box for a comment. */
  declare protected asks: boolean;

  constructor() {
    super();
    this.turnId = "";
    this.source = null;
    this.context = createContext();
    this.given = "none";
    this.asks = false;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("turnId") && !changed.has("source")) return;
    const { turnId, source } = this;
    source?.of(turnId).then((found) => {
      if (turnId === this.turnId) this.given = found?.rating ?? "none";
    }, () => undefined);
  }

  protected override render(): unknown {
    const { t } = this.context;
    const thumb = (rating: "up" | "down", label: string) =>
      html`<button type="button" class="arp-icon-button" aria-pressed=${this.given === rating ? "true" : "false"} aria-label=${label} title=${label} @click=${() => void this.#rate(rating)}>
        ${icon(rating === "up" ? "thumbUp" : "thumbDown")}
      </button>`;
    return html`${thumb("up", t("rateUp"))}${thumb("down", t("rateDown"))}${this.asks
      ? html`<form class="arp-comment" @submit=${(event: SubmitEvent) => void this.#comment(event)}>
          <input name="comment" maxlength=${MOST_CHARACTERS} aria-label=${t("rateWhy")} placeholder=${t("rateWhy")} autocomplete="off" />
          <button type="submit" class="arp-button arp-soft arp-small">${t("send")}</button>
        </form>`
      : nothing}`;
  }

  /** Takes a thumb, or takes it back. */
  async #rate(rating: "up" | "down"): Promise<void> {
    const next = this.given === rating ? "none" : rating;
    if (await this.#give({ rating: next })) this.asks = next !== "none";
  }

  async #comment(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const comment = new FormData(event.target as HTMLFormElement).get("comment");
    const text = typeof comment === "string" ? comment.trim() : "";
    if (text === "" || (await this.#give({ rating: this.given, comment: text }))) this.asks = false;
  }

  async #give(rating: Rating): Promise<boolean> {
    const before = this.given;
    this.given = rating.rating;
    try {
      await this.source?.give(this.turnId, rating);
    } catch {
      this.given = before;
      this.context.announce(this.context.t("rateFailed"));
      return false;
    }
    this.dispatchEvent(new CustomEvent("arp-feedback", { bubbles: true, composed: true, detail: { turnId: this.turnId, comment: "", ...rating } }));
    if (rating.rating !== "none") this.context.announce(this.context.t("rateThanks"));
    return true;
  }
}

define("arp-rating", ArpRating);
