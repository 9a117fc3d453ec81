/** The readable text of a component that this page does not know: its words, never its notation. */

const WORDS = [
  "title",
  "name",
  "label",
  "key",
  "value",
  "status",
  "message",
  "description",
  "content",
  "text",
  "detail",
  "caption",
  "alt",
  "code",
  "before",
  "after",
  "price",
];
const LISTS = [
  "items",
  "sections",
  "steps",
  "cards",
  "options",
  "fields",
  "children",
  "tabs",
  "left",
  "right",
  "component",
  "props",
  "headers",
  "rows",
  "labels",
  "datasets",
  "data",
];
const DEEPEST = 6;
const MOST_LINES = 300;

/** Lines of text, "" when there is none. */
export function readable(props) {
  const lines = [];
  collect(props, lines, 0);
  return lines.slice(0, MOST_LINES).join("\n");
}

function collect(value, lines, depth) {
  if (depth > DEEPEST || lines.length >= MOST_LINES || value === null) return;
  if (Array.isArray(value)) {
    collectArray(value, lines, depth);
  } else if (typeof value === "object") {
    const words = WORDS.map((key) => value[key])
      .filter(isWord)
      .map(String);
    if (words.length) lines.push(words.join(": "));
    for (const key of LISTS) collect(value[key] ?? null, lines, depth + 1);
  }
}

function collectArray(values, lines, depth) {
  const words = values.filter(isWord);
  if (words.length) lines.push(words.join(", "));
  for (const value of values) collect(value, lines, depth + 1);
}

function isWord(value) {
  return (typeof value === "string" && value !== "") || typeof value === "number";
}

/** One line for an input that the user made without words: which options, which answer. */
export function inputText({ input_type: type, data = {} }, source) {
  const props = source?.props ?? {};
  switch (type) {
    case "text":
      return data.text ?? "";
    case "file":
      return data.text ?? "";
    case "voice":
      return data.transcript ?? "";
    case "selection":
      return [data.selected]
        .flat()
        .map((value) => optionLabel(props.options, value))
        .join(", ");
    case "form_submit":
      return props.title ? `Sent: ${props.title}` : "Sent the form";
    case "action":
      return actionText(data.action, props);
    default:
      return "";
  }
}

/** The label of the option with this value; the value itself when there is none. */
export function optionLabel(options, value) {
  const option = [options ?? []].flat().find((candidate) => optionValue(candidate) === value);
  return String(option?.label ?? option ?? value);
}

/** What an answer holds when this option is taken: its value, else its label. */
export function optionValue(option) {
  return typeof option === "object" ? (option?.value ?? option?.label) : option;
}

function actionText(action, props) {
  if (action === "confirm") return props.confirm_label ?? "Yes";
  if (action === "deny") return props.deny_label ?? "No";
  return action === "arp.cancel" ? "" : String(action ?? "").replaceAll(/[._-]/g, " ");
}
