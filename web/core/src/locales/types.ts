/** Types of a table of texts. */

import type { EN } from "./en.js";

/** A text by plural category (`Intl.PluralRules`); `other` is always there. */
export type Plural = { readonly [category in Intl.LDMLPluralRule]?: string } & { readonly other: string };

export type StringKey = keyof typeof EN;

/** All texts of one language. `{name}` is a placeholder; `{count}` selects the plural. */
export type Strings = { readonly [key in StringKey]: string | Plural } & Problems;

/** Explanations of errors, by the codes of the protocol. English has none: the server's own texts are English. */
export type Problems = { readonly [key in `error${number}`]?: string };
