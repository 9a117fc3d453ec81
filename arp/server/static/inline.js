/**
 * Markdown within a line: text in, nodes out, no document. A node is a string or
 * `{t, ...}` with t one of strong, em, del, code, a, image, br; anything that is not understood
 * stays text. Linear in the length of the text: a search that failed once is not made again, and
 * brackets are matched in one pass. With `open`, markup that is not closed yet counts as closed at
 * the end, so that streaming text does not flash its marks.
 */

const SPECIAL = /[\\`*_~[!<&\n]|https?:\/\//g;
const ENTITIES = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": "\u00a0",
};
const DEEPEST = 6;
const LONGEST_URL = 2048;

/** Parses one paragraph's text. */
export function parseInline(text, open = false, depth = 0) {
  return new Inline(text, open, depth).run();
}

class Inline {
  nodes = [];
  at = 0;
  #failed = new Set();
  #brackets = null;

  constructor(text, open, depth) {
    Object.assign(this, { text, open, depth });
  }

  run() {
    const { text } = this;
    while (this.at < text.length) {
      SPECIAL.lastIndex = this.at;
      const start = SPECIAL.exec(text)?.index ?? text.length;
      this.#text(text.slice(this.at, start));
      this.at = start;
      if (start < text.length && !this.#special(text[start])) {
        this.#text(text[start]);
        this.at = start + 1;
      }
    }
    return this.nodes;
  }

  #special(mark) {
    switch (mark) {
      case "\\":
        return this.#escape();
      case "`":
        return this.#code();
      case "*":
      case "_":
      case "~":
        return this.#emphasis(mark);
      case "[":
        return this.#link(this.at, "a");
      case "!":
        return this.text[this.at + 1] === "[" && this.#link(this.at + 1, "image");
      case "<":
        return this.#angle();
      case "&":
        return this.#entity();
      case "\n":
        return this.#push({ t: "br" }, this.at + 1);
      default:
        return this.#bareUrl();
    }
  }

  #text(text) {
    if (!text) return;
    if (typeof this.nodes.at(-1) === "string") this.nodes[this.nodes.length - 1] += text;
    else this.nodes.push(text);
  }

  #push(node, next) {
    if (typeof node === "string") this.#text(node);
    else this.nodes.push(node);
    this.at = next;
    return true;
  }

  #escape() {
    const next = this.text[this.at + 1];
    if (next === "\n") return this.#push({ t: "br" }, this.at + 2);
    return next !== undefined && /[!-/:-@[-`{-~]/.test(next) && this.#push(next, this.at + 2);
  }

  #code() {
    const length = runLength(this.text, this.at);
    const from = this.at + length;
    let end = this.#failed.has(`\`${length}`) ? -1 : closingRun(this.text, from, length);
    if (end < 0) {
      this.#failed.add(`\`${length}`);
      if (!this.open) return this.#push(this.text.slice(this.at, from), from);
      end = this.text.length;
    }
    const code = this.text.slice(from, end);
    const padded = code.startsWith(" ") && code.endsWith(" ") && code.trim();
    return this.#push({ t: "code", text: padded ? code.slice(1, -1) : code }, end + length);
  }

  #emphasis(mark) {
    const run = runLength(this.text, this.at);
    const size = mark === "~" ? 2 : Math.min(run, 3);
    const from = this.at + size;
    if (this.open && this.at + run === this.text.length) return this.#push("", this.text.length);
    const wordBefore = mark === "_" && /[\p{L}\p{N}]/u.test(this.text[this.at - 1] ?? "");
    const opens = run >= size && run <= 3 && /\S/.test(this.text[from] ?? "") && !wordBefore;
    if (!opens || this.depth >= DEEPEST)
      return this.#push(this.text.slice(this.at, this.at + run), this.at + run);
    const end = this.#closer(mark.repeat(size), from);
    if (end < 0) return this.#push(mark.repeat(run), this.at + run);
    const inner = parseInline(
      this.text.slice(from, end),
      this.open && end === this.text.length,
      this.depth + 1,
    );
    return this.#push(emphasised(mark, size, inner), end + size);
  }

  /** Where `marker` closes what opened before `from`; -1 when nowhere. */
  #closer(marker, from) {
    if (this.#failed.has(marker)) return -1;
    for (let at = this.text.indexOf(marker, from); at >= 0;) {
      const run = runLength(this.text, at);
      const word = marker[0] === "_" && /[\p{L}\p{N}]/u.test(this.text[at + run] ?? "");
      if (
        run >= marker.length &&
        (run === marker.length || run === 3) &&
        at > from &&
        /\S/.test(this.text[at - 1]) &&
        !word
      )
        return at + run - marker.length;
      at = this.text.indexOf(marker, at + run);
    }
    if (this.open) return this.text.length;
    this.#failed.add(marker);
    return -1;
  }

  #link(start, t) {
    const close = this.#matching(start);
    if (close === undefined) return false;
    if (this.text[close + 1] !== "(") return false;
    const target = destination(this.text, close + 2);
    if (
      !target &&
      !(this.open && !this.text.slice(close + 2, close + 2 + LONGEST_URL).includes(" "))
    )
      return false;
    const label = this.text.slice(start + 1, close);
    if (!target) return this.#push({ t: "em", children: [label] }, this.text.length);
    if (t === "image") return this.#push({ t, url: target.url, alt: label }, target.end);
    const children = this.depth < DEEPEST ? parseInline(label, false, this.depth + 1) : [label];
    return this.#push({ t, url: target.url, children }, target.end);
  }

  #matching(start) {
    this.#brackets ??= matchBrackets(this.text);
    return this.#brackets.get(start);
  }

  #angle() {
    const line = /<br ?\/?>/iy;
    line.lastIndex = this.at;
    if (line.test(this.text)) return this.#push({ t: "br" }, line.lastIndex);
    const auto = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2048})>/iy;
    auto.lastIndex = this.at;
    const url = auto.exec(this.text)?.[1];
    return url !== undefined && this.#push({ t: "a", url, children: [url] }, auto.lastIndex);
  }

  #entity() {
    const entity = Object.keys(ENTITIES).find((name) => this.text.startsWith(name, this.at));
    return entity !== undefined && this.#push(ENTITIES[entity], this.at + entity.length);
  }

  #bareUrl() {
    const bare = /https?:\/\/[^\s<>"'`|\\^{}]{1,2048}/y;
    bare.lastIndex = this.at;
    let url = bare.exec(this.text)?.[0];
    if (!url) return false;
    const stray = url.includes("(") ? ".,:;!?*_~]" : ".,:;!?*_~])";
    let end = url.length;
    while (stray.includes(url[end - 1])) end -= 1;
    url = url.slice(0, end);
    return this.#push({ t: "a", url, children: [url] }, this.at + end);
  }
}

function emphasised(mark, size, children) {
  if (mark === "~") return { t: "del", children };
  if (size === 1) return { t: "em", children };
  return { t: "strong", children: size === 2 ? children : [{ t: "em", children }] };
}

function runLength(text, at) {
  let end = at + 1;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

function closingRun(text, from, length) {
  for (let at = text.indexOf("`", from); at >= 0;) {
    const run = runLength(text, at);
    if (run === length) return at;
    at = text.indexOf("`", at + run);
  }
  return -1;
}

/** Opening to closing position of every pair of square brackets. */
function matchBrackets(text) {
  const pairs = new Map();
  const stack = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") stack.push(at);
    else if (text[at] === "]" && stack.length) pairs.set(stack.pop(), at);
  }
  return pairs;
}

/** The address of `](address "title")` from behind the parenthesis; null when it does not close. */
function destination(text, from) {
  let depth = 0;
  for (let at = from; at < text.length && at - from <= LONGEST_URL; at += 1) {
    const mark = text[at];
    if (mark === "(" && ++depth > DEEPEST) return null;
    else if (mark === ")" && depth-- === 0) return { url: text.slice(from, at), end: at + 1 };
    else if (/\s/.test(mark)) return titled(text, from, at);
  }
  return null;
}

function titled(text, from, space) {
  const title = /\s+(?:"[^"\n]{0,300}"|'[^'\n]{0,300}')?\s{0,9}\)/y;
  title.lastIndex = space;
  return title.test(text) ? { url: text.slice(from, space), end: title.lastIndex } : null;
}
