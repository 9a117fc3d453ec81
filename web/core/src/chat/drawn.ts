/** Component types that the elements draw. */

import { VERSIONS } from "../protocol/generated/tables.js";

/** Type of the sources of an answer. It is an experiment, so it is not in the catalog. */
export const SOURCES = "x-arp-sources";

/** Type of the name of an author, for everything after it in a turn. It is an experiment too. */
export const AUTHOR = "x-arp-author";

/** Component types that the elements draw, with their newest versions: the catalog and the experiments. */
export const DRAWN: { readonly [type: string]: number } = { ...VERSIONS, [SOURCES]: 1, [AUTHOR]: 1 };
