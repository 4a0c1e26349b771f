/**
 * JSON text as it is shown. The text is walked and never parsed: digits, the order of keys and repeated keys
 * stay as they were sent.
 */
export type Kind = "key" | "string" | "number" | "literal" | "mark" | "";
export interface Piece {
  kind: Kind;
  text: string;
  /** Of a key: what a config reaches the field by, or the list that the field is in. */
  path?: string;
}

// A text is matched without alternatives, so that megabytes of it take no stack.
const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)|([{}[\],])/g;

/** Whether the server has cut a message: it is no JSON any more then. */
export const isCut = (message: string): boolean => message.endsWith("…");

/** A text in the pieces that it is made of. What is no JSON is a piece without a kind. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > at) found.push({ kind: "", text: text.slice(at, match.index) });
    found.push({ kind: kindOf(match), text: match[0] });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ kind: "", text: text.slice(at) });
  return found;
}

function kindOf([, quoted, isKey, digits, word]: RegExpMatchArray): Kind {
  if (quoted) return isKey ? "key" : "string";
  return digits ? "number" : word ? "literal" : "mark";
}

/** An object or a list that is open. */
interface Level {
  isEmpty: boolean;
  /** Its path; undefined where none leads to it: a path leads through objects alone. */
  path: string | undefined;
  /** The last path on the way to it. */
  nearest: string;
}

/** A text in pieces, indented by two spaces; each key has the path that a config reaches it by. */
export function indented(text: string): Piece[] {
  const out: Piece[] = [];
  const levels: Level[] = [];
  let next: Omit<Level, "isEmpty"> = { path: "", nearest: "" };
  const line = () => out.push({ kind: "", text: "\n" + "  ".repeat(levels.length) });
  for (const piece of pieces(text)) {
    const level = levels.at(-1);
    if (!piece.kind && !piece.text.trim()) continue;
    if (level?.isEmpty && !is(piece, "}]")) line();
    if (is(piece, "}]")) {
      levels.pop();
      if (!level?.isEmpty) line();
    }
    if (level) level.isEmpty = false;
    if (piece.kind === "key") {
      const key = piece.text.replace(/\s*:$/, "");
      const [own, below] = paths(level?.path, JSON.parse(key) as string);
      const nearest = own ?? level?.nearest ?? "";
      next = { path: below, nearest };
      out.push({ kind: "key", text: key, path: nearest }, { kind: "mark", text: ": " });
      continue;
    }
    out.push(piece);
    if (is(piece, "{")) levels.push({ isEmpty: true, ...next });
    else if (is(piece, "[")) levels.push({ isEmpty: true, path: undefined, nearest: next.nearest });
    else if (is(piece, ",")) line();
    if (is(piece, "[")) next = { path: undefined, nearest: next.nearest };
  }
  return out;
}

const is = ({ kind, text }: Piece, marks: string) => kind === "mark" && marks.includes(text);

/** The path of a field, and the one that leads on into it. A name with a dot is found at the top level alone. */
function paths(parent: string | undefined, name: string): [string?, string?] {
  if (parent === undefined) return [];
  if (name.includes(".")) return parent === "" ? [name] : [];
  const path = parent === "" ? name : `${parent}.${name}`;
  return [path, path];
}
