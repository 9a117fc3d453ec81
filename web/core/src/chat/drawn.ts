/** What the elements draw. */

import { VERSIONS } from "../protocol/generated/tables.js";

/** What an answer rests on: an experiment, so not of the catalog. */
export const SOURCES = "x-arp-sources";

/** Who speaks from here on in a turn: an experiment too. */
export const AUTHOR = "x-arp-author";

/** What the elements draw, with the newest versions: the catalog and the experiments. */
export const DRAWN: { readonly [type: string]: number } = { ...VERSIONS, [SOURCES]: 1, [AUTHOR]: 1 };
