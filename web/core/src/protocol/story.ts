/** A turn in chronological order: its output, with inputs, tools, thinking and errors at their marks. */

import { isTextPart, type Mark, type TurnState } from "./screen.js";

/** One item of a turn in reading order. A text part is several pieces if there are marks inside it. */
export interface Piece {
  readonly kind: "text" | "component" | Mark["kind"];
  /** Index, from 0: in `output` for text and components, otherwise in `inputs`, `tools` or `errors`. */
  readonly number: number;
  /** Text of this piece; empty for everything but text. */
  readonly text: string;
}

/** Return all pieces of a turn in order. A mark that follows an unknown component comes first. */
export function storyOf({ id, output, marks }: TurnState): Piece[] {
  const places = new Map<string | null, Mark[]>([[null, []]]);
  for (const component of output) places.set(component.id, []);
  for (const mark of marks) (places.get(mark.component) ?? (places.get(null) as Mark[])).push(mark);
  const pieceOf = ({ kind, number }: Mark): Piece => ({ kind, number, text: "" });
  const pieces = (places.get(null) as Mark[]).map(pieceOf);
  output.forEach((component, number) => {
    const here = places.get(component.id) as Mark[];
    if (!isTextPart(component, id)) {
      pieces.push({ kind: "component", number, text: "" }, ...here.map(pieceOf));
      return;
    }
    const content = component.props.content as string;
    let start = 0;
    const upTo = (end: number) => {
      if (end > start) pieces.push({ kind: "text", number, text: content.slice(start, end) });
      start = Math.max(start, end);
    };
    for (const [end, mark] of here
      .map((mark) => [unitsOf(content, mark.characters), mark] as const)
      .sort(([one], [other]) => one - other)) {
      upTo(end);
      pieces.push(pieceOf(mark));
    }
    upTo(content.length);
  });
  return pieces;
}

/** Return the string index after a number of Unicode characters. */
function unitsOf(text: string, characters: number | null): number {
  if (characters === null) return text.length;
  let at = 0;
  for (let left = characters; left > 0 && at < text.length; left -= 1) {
    at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
  }
  return at;
}
