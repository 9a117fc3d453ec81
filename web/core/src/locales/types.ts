/** What a table of words holds. */

import type { EN } from "./en.js";

/** A text by plural category (`Intl.PluralRules`); `other` is always there. */
export type Plural = { readonly [category in Intl.LDMLPluralRule]?: string } & { readonly other: string };

export type StringKey = keyof typeof EN;

/** Every text of one language; `{name}` is filled in, a plural chosen by `{count}`. */
export type Strings = { readonly [key in StringKey]: string | Plural } & Problems;

/** What went wrong, by the codes of the protocol. English has none: so the server's own words are written. */
export type Problems = { readonly [key in `error${number}`]?: string };
