/** The surfaces beside the conversation, as one value that changes only when something on them changes. */

import type { Cell } from "../client/cells.js";
import type { ArpClient } from "../client/client.js";
import { questionState } from "../protocol/answers.js";
import type { Component, SurfaceInfo } from "../protocol/generated/wire.js";
import { sameList, sameValues } from "../protocol/same.js";
import { childrenOf } from "./children.js";

/** One surface besides `main`, without popups and overlays. */
export interface PanelSurface {
  readonly name: string;
  /** `undefined` if the agent side only rendered to it. */
  readonly info: SurfaceInfo | undefined;
  readonly components: readonly Component[];
}

/** Content of a side panel. */
export interface PanelContent {
  readonly sessionId: string | null;
  /** Surfaces, sorted by name. */
  readonly surfaces: readonly PanelSurface[];
}

/** Return the cell of a side panel's content. It is computed again when a surface or the status changes. */
export function panelOf({ store }: ArpClient): Cell<PanelContent> {
  let content: PanelContent = { sessionId: null, surfaces: [] };
  const get = () => {
    const { sessionId } = store.status.get();
    const now = store.surfaceNames.get().map((name): PanelSurface => ({
      name,
      info: store.surfaceInfo(name).get(),
      components: store.surface(name).get(),
    }));
    const surfaces = sameList(content.surfaces, now, sameValues);
    if (surfaces !== content.surfaces || sessionId !== content.sessionId) content = { sessionId, surfaces };
    return content;
  };
  return store.derived(get, (name) => /^(status|surfaces|surface:|info:)/.test(name));
}

/**
 * Return the ids of all components of a panel, and for each open question additionally its id with `?`. An id that an
 * earlier set does not contain belongs to something that is new to the user.
 */
export function idsIn({ surfaces }: PanelContent): Set<string> {
  return new Set(surfaces.flatMap(({ components }) => components.flatMap(idsOf)));
}

function idsOf(component: Component): string[] {
  const asks = questionState(component) === "open" ? [`${component.id}?`] : [];
  return [component.id, ...asks, ...childrenOf(component).flatMap(idsOf)];
}
