import { isMap, isScalar, isSeq, parseDocument, stringify, type Node } from "yaml";
import { columnOf, ended, isRow, lastEnd, lineEnd, lineStart, starts } from "./places";
import { nodeAt, pairAt, read, type Path, type Reading } from "./yaml";

/** One replacement in a text. Comments and the style of everything else stay. */
export interface Edit {
  from: number;
  to: number;
  insert: string;
}

const NUMBER = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;

/** What was written in a box, as YAML: quoted where it would mean something else than it should. */
export function scalar(written: string, kind: "text" | "plain"): string {
  const isPlain =
    kind === "plain" && (NUMBER.test(written) || /^(?:true|false|null)$/.test(written));
  return isPlain ? written : stringify(written, { lineWidth: 0 }).trimEnd();
}

/** Put a scalar at a path: in the place of the one that is there, or where it belongs. */
export function put(reading: Reading, path: Path, written: string): Edit {
  const node = nodeAt(reading, path);
  if (isScalar(node) && node.range && node.range[0] < node.range[1])
    return { from: node.range[0], to: ended(reading.text, node), insert: written };
  const key = pairAt(reading, path)?.key;
  if (key?.range && (!node || isScalar(node))) {
    const colon = reading.text.indexOf(":", key.range[1]) + 1;
    return { from: colon, to: colon, insert: ` ${written}` };
  }
  return added(reading, path, written.split("\n"));
}

/** Put a value, of whatever shape, where there is none. */
export function add(reading: Reading, path: Path, value: unknown): Edit {
  const lines = stringify(value, { lineWidth: 96 }).trimEnd().split("\n");
  return added(
    reading,
    path,
    lines,
    typeof value === "object" && value !== null && !["[]", "{}"].includes(lines[0]!),
  );
}

/** Take out what is at a path, with its key. */
export function remove(reading: Reading, path: Path): Edit {
  const parentPath = path.slice(0, -1);
  const parent = nodeAt(reading, parentPath);
  const index = isMap(parent)
    ? parent.items.findIndex(
        ({ key }) => isScalar(key) && String(key.value) === String(path.at(-1)),
      )
    : Number(path.at(-1));
  if (!isMap(parent) && !isSeq(parent)) return { from: 0, to: 0, insert: "" };
  const { text } = reading;
  const from = starts(text, parent, index);
  const to = lastEnd(text, parent, index);
  if (parent.items.length === 1)
    return {
      from: parent.range![0],
      to: lastEnd(text, parent),
      insert: isMap(parent) ? "{}" : "[]",
    };
  if (parent.flow || index === 0) {
    // What is next takes its place; the last one goes with the comma before it.
    return index < parent.items.length - 1
      ? { from, to: starts(text, parent, index + 1), insert: "" }
      : { from: lastEnd(text, parent, index - 1), to, insert: "" };
  }
  const line = text.lastIndexOf("\n", from - 1);
  const end = text.indexOf("\n", Math.max(to - 1, from));
  return { from: Math.max(line, 0), to: end < 0 ? text.length : end, insert: "" };
}

/** Add something below what is around its place. Lines are of a block, unless they are one. */
function added(reading: Reading, path: Path, lines: string[], isBlock = false): Edit {
  const parentPath = path.slice(0, -1);
  const parent = nodeAt(reading, parentPath);
  const step = path.at(-1)!;
  const { text } = reading;
  if (isMap(parent) || isSeq(parent)) {
    const isItem = isSeq(parent);
    if (parent.flow) {
      const flow = isBlock ? flowOf(lines) : lines.join("\n");
      const insert = isItem ? flow : `${step}: ${flow}`;
      if (!parent.items.length)
        return isBlock && isRow(text, parent.range![0])
          ? instead(text, parent, entry(step, lines, isBlock, isItem), parentPath)
          : { from: parent.range![0] + 1, to: parent.range![0] + 1, insert };
      const at = lastEnd(text, parent);
      return { from: at, to: at, insert: `, ${insert}` };
    }
    const indent = " ".repeat(columnOf(text, parent.range![0]));
    let at = lastEnd(text, parent);
    const isAtLineStart = text[at - 1] === "\n"; // behind a block of text
    if (!isAtLineStart) at = lineEnd(text, at);
    const block = entry(step, lines, isBlock, isItem)
      .map((line) => indent + line)
      .join("\n");
    return { from: at, to: at, insert: isAtLineStart ? `${block}\n` : `\n${block}` };
  }
  if (!path.length) return { from: 0, to: text.length, insert: `${lines.join("\n")}\n` };
  const around = entry(step, lines, isBlock, typeof step === "number");
  const pair = pairAt(reading, parentPath);
  if (!pair) return added(reading, parentPath, around, true);
  return instead(text, pair.key, around, parentPath, pair.value);
}

/** A block below a key, in the place of nothing or of empty brackets. */
function instead(
  text: string,
  at: Node,
  lines: string[],
  path: Path,
  value: Node | null = at,
): Edit {
  const begin = lineStart(text, at.range![0]);
  const dash = /^[ -]*/.exec(text.slice(begin))![0].length;
  const column = typeof path.at(-1) === "string" ? dash + 2 : dash;
  const block = lines.map((line) => `\n${" ".repeat(column)}${line}`).join("");
  if (at === value) {
    const from = text.lastIndexOf(":", at.range![0]) + 1;
    return { from, to: at.range![1], insert: block };
  }
  const colon = text.indexOf(":", at.range![1]) + 1;
  const to = value?.range && value.range[0] < value.range[1] ? value.range[1] : colon;
  return { from: colon, to, insert: block };
}

function entry(
  step: string | number,
  lines: string[],
  isBlock: boolean,
  isItem: boolean,
): string[] {
  const [first, ...rest] = lines;
  if (isItem) return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
  const key = scalar(String(step), "text");
  return isBlock ? [`${key}:`, ...lines.map((line) => `  ${line}`)] : [`${key}: ${first}`, ...rest];
}

const flowOf = (lines: string[]): string => {
  const document = parseDocument(lines.join("\n"));
  if (isMap(document.contents) || isSeq(document.contents)) document.contents.flow = true;
  return document.toString({ lineWidth: 0 }).trim();
};

/** Make an edit, if it means what it should; else write the whole text anew, with its comments. */
export function certain(
  reading: Reading,
  edit: Edit,
  wanted: (document: Reading["document"]) => void,
): Edit {
  const { from, to, insert } = edit;
  const made = read(reading.text.slice(0, from) + insert + reading.text.slice(to));
  const other = read(reading.text).document;
  wanted(other);
  const means = (document: Reading["document"]) =>
    document.errors.length ? undefined : JSON.stringify(document.toJS(), big);
  if (means(made.document) === means(other)) return edit;
  return { from: 0, to: reading.text.length, insert: other.toString({ lineWidth: 96 }) };
}

const big = (_: string, value: unknown): unknown =>
  typeof value === "bigint" ? `${value}n` : value;
