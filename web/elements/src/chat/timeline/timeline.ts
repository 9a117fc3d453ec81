/** The content of a conversation: its turns, oldest first, or a welcome if there are none. */

import { isGreeting, type ArpClient, type TurnState } from "@agent-rendering/core";
import type { HistoryGap, HistoryPages } from "@agent-rendering/core/history";
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import type { ArpContext } from "../../base/context.js";
import type { MessageActions } from "../message/message.js";
import { isBubble, outgoingBubbles } from "../composer/outgoing.js";
import type { Recent } from "./recent.js";
import { dayLines } from "./times.js";
import { watch } from "../watch.js";
import type { Welcome } from "../status/welcome.js";

/** The data that a conversation is drawn from. */
export interface Timeline {
  readonly client: ArpClient;
  /** Number of the conversation. Another one gets new elements, so open folds and edits are not carried over. */
  readonly number: number;
  readonly context: ArpContext;
  readonly older: HistoryPages;
  readonly recent: Recent;
  readonly avatar: string;
  readonly showActivity: boolean;
  readonly actions: MessageActions;
  welcome(isGreeted: boolean): Welcome;
  loadOlder(gap: HistoryGap): void;
  /** Put a text and files back into the message box. */
  back(text: string, files: readonly File[]): void;
}

/** Number of turns in a part. The browser lays out only parts in view, and few parts cost less than many turns. */
const PART_TURNS = 10;

/** Load the element of messages. It is not in the first load, so that an empty chat starts sooner. */
export const loadMessages = () => import("../message/message.js").catch(() => undefined); // tried again with the next turn

/** Return a conversation. A change within a turn redraws its own message only. */
export function timeline({
  client,
  number,
  context,
  older,
  recent,
  avatar,
  showActivity,
  actions,
  welcome,
  loadOlder,
  back,
}: Timeline): TemplateResult {
  const { store } = client;
  const { loading, stale, phase } = store.status.get();
  const ids = store.turnIds.get();
  const outgoing = store.outgoing.get();
  const isEmpty = ids.length === 0 && !outgoing.some(isBubble);
  const greeted = isUnused(client) && !isEmpty ? welcome(true) : null;
  const lines = dayLines(
    older.among(ids, (id) => store.turn(id).get()),
    context.t,
  );
  if (!isEmpty) void loadMessages();
  const drawn = recent.of(ids);
  const before = older.top?.turns ?? [];
  const more = (gap: HistoryGap | null | undefined) =>
    gap?.wanted
      ? html`<button type="button" class="arp-button arp-quiet arp-older" aria-busy=${gap.loading ? "true" : "false"} @click=${() => loadOlder(gap)}>
          ${gap.loading ? html`<span class="arp-spinner"></span>` : nothing}${context.t("loadOlder")}
        </button>`
      : nothing;
  const past = (turn: TurnState) =>
    html`${lines.get(turn.id)}<arp-message readonly data-turn=${turn.id} .turn=${turn} .context=${context} .avatar=${avatar} .activity=${showActivity}></arp-message>`;
  const left = (gap: HistoryGap | undefined) => (gap ? html`${more(gap)}${repeat(gap.turns, idOf, past)}` : nothing);
  const isLoading = loading && !stale && isEmpty && client.sessionId !== null && phase !== "refused";
  return html`${
    isLoading
      ? html`<div class="arp-skeleton" role="img" aria-label=${context.t("loading")}><span></span><span></span><span></span></div>`
      : isEmpty
        ? welcome(false).before
        : (greeted?.before ?? nothing)
  }
    ${recent.isPartial ? nothing : more(older.top)}
    ${repeat(
      [number],
      (number) => number,
      () => html`<div class="arp-log" role="log" aria-live="off" aria-label=${context.t("messages")}>
      ${parts(before, -before.length, idOf, past)}
      ${parts(
        drawn,
        ids.length - drawn.length,
        (id) => id,
        (id) =>
          html`${left(older.before(id))}${lines.get(id)}<arp-message data-turn=${id} .turn=${watch(store.turn(id))} .client=${client} .context=${context} .actions=${actions} .avatar=${avatar} .activity=${showActivity}></arp-message>`,
      )}
      ${outgoingBubbles(outgoing, client, context, back)}
    </div>`,
    )}${greeted?.after ?? nothing}`;
}

/** Return whether the conversation is empty apart from the greeting of the app. */
export function isUnused({ store }: ArpClient): boolean {
  const [first, ...others] = store.turnIds.get();
  const isQuiet = first === undefined || (others.length === 0 && isGreeting(store.turn(first).get()));
  return isQuiet && !store.outgoing.get().some(isBubble);
}

const idOf = ({ id }: TurnState) => id;

/**
 * Return turns grouped into parts. Turns that are added above or below do not change the other parts.
 *
 * @param first Index of the first turn among all turns; negative for turns before them.
 */
function parts<T>(
  turns: readonly T[],
  first: number,
  idOf: (turn: T) => string,
  draw: (turn: T) => TemplateResult,
): unknown {
  const made = new Map<number, T[]>();
  turns.forEach((turn, at) => {
    const place = Math.floor((first + at) / PART_TURNS);
    const part = made.get(place);
    if (part === undefined) made.set(place, [turn]);
    else part.push(turn);
  });
  return repeat(
    made,
    ([place]) => place,
    ([, part]) => html`<div class="arp-log-part">${repeat(part, idOf, draw)}</div>`,
  );
}
