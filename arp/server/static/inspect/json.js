/**
 * JSON without rounding: a whole number that does not fit a number here is read as text of its digits.
 * Facts have integers of up to 64 bits.
 */

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/gs;
const LONG = /^-?[1-9]\d{15,}$/;

/** Reads JSON; throws a `SyntaxError` if it is none. */
export function parseJson(json) {
  if (!/\d{16}/.test(json)) return JSON.parse(json);
  const exact = (token) => (LONG.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token);
  return JSON.parse(json.replace(TOKEN, exact));
}
