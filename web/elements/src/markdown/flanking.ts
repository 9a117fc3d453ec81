/**
 * Rules for `*` and `~` beside Chinese, Japanese and Korean (CJK) text.
 *
 * CommonMark lets a mark open or close beside punctuation only if there is a blank on the other side. These languages
 * have no blanks, so `**「…」**` inside of a sentence would stay characters. Here a CJK character counts as such a blank,
 * and CJK punctuation as a letter. `renderers/arp_terminal/inline_rules.py` has the same rules, and
 * `schemas/cases/emphasis.json` has test cases for both.
 */

import { Lexer, Tokenizer, type MarkedOptions, type Tokens } from "marked";

const CJK =
  "\\u1100-\\u11ff\\u2e80-\\u2fff\\u3001-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7ff\\uf900-\\ufaff\\ufe10-\\ufe6f\\uff01-\\uffee\\u{16fe0}-\\u{1b2ff}\\u{1f200}-\\u{1f2ff}\\u{20000}-\\u{3fffd}";
const IS_CJK = new RegExp(`[${CJK}]$`, "u");
const BEGINS_CJK = new RegExp(`^[*~]+[${CJK}]`, "u");

/**
 * Return the expression that finds the end of emphasis with one mark. It replaces the expression of marked, which reads
 * its groups by number, so each group has the same meaning as there.
 */
function end(mark: string, run: string, skip: string): RegExp {
  const sign = `(?![${CJK}${mark}~])[\\p{P}\\p{S}]`;
  const other = `(?:[^\\s\\p{P}\\p{S}]|[${CJK}${mark === "~" ? "" : "~"}])`;
  const latin = `(?![${CJK}])${other}`;
  const last = `(?!${mark})`;
  return new RegExp(
    `${skip}[^${mark}]+(?=[^${mark}])` +
      `|${sign}(${run})(?=\\s|$)` + // can close
      `|(?:${latin}(?=${run}${last}${sign})|${other}(?=${run}${last}(?:\\s|$)))(${run})` +
      `|(?:${sign}(?=${run}${latin})|\\s(?=${run}${other}))(${run})` + // can open
      `|\\s(${run})${last}(?=${sign})` +
      `|(?:${sign}(?=${run}${last}(?:${sign}|[${CJK}]))|[${CJK}](?=${run}${last}${sign}))(${run})` + // both
      `|${other}(${run})(?=${other})`,
    "gu",
  );
}

const RULES = {
  emStrongRDelimAst: end("\\*", "\\*+", "^[^_*]*?__[^_*]*?\\*[^_*]*?(?=__)|"),
  delRDelim: end("~", "~~?", ""),
};

/** A tokenizer that lets marks open beside CJK characters as marked does beside a blank. */
class CjkTokenizer extends Tokenizer {
  override emStrong(source: string, masked: string, before = ""): Tokens.Em | Tokens.Strong | undefined {
    return super.emStrong(source, masked, isEdge(source, before) ? "" : before);
  }

  override del(source: string, masked: string, before = ""): Tokens.Del | undefined {
    return super.del(source, masked, isEdge(source, before) ? "" : before);
  }
}

/** Return whether a mark may open here even if punctuation follows it. */
function isEdge(source: string, before: string): boolean {
  return !source.startsWith("_") && (IS_CJK.test(before) || BEGINS_CJK.test(source));
}

/** Return a lexer with these rules. */
export function cjkLexer(options: MarkedOptions): Lexer {
  const tokenizer = new CjkTokenizer();
  const made = new Lexer({ ...options, tokenizer });
  tokenizer.rules = { ...tokenizer.rules, inline: { ...tokenizer.rules.inline, ...RULES } };
  return made;
}
