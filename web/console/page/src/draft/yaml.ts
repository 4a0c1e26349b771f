import {
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Node,
  type Pair,
} from "yaml";

export type Path = readonly (string | number)[];

/** A text, what is read in it, and the value that it means; none where it is no YAML. */
export interface Reading {
  readonly text: string;
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
  readonly value: unknown;
}

/** Read a text. Whole numbers keep all their digits. */
export function read(text: string): Reading {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, intAsBigInt: true });
  return { text, document, lines, value: valueOf(document) };
}

function valueOf(document: Document.Parsed): unknown {
  if (document.errors.length) return undefined;
  try {
    return document.toJS();
  } catch {
    return undefined; // aliases of aliases, without an end
  }
}

/** What stands at a path of a value. */
export function member(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (found, step) =>
      typeof found === "object" && found !== null
        ? (found as Record<string | number, unknown>)[step]
        : undefined,
    value,
  );
}

/** `transforms[1].size` as steps. */
export const steps = (path: string): Path =>
  [...path.matchAll(/"((?:[^"\\]|\\.)*)"|([^.[\]]+)|\[(\d+)\]/g)].map(([, quoted, key, index]) =>
    index === undefined ? (quoted ?? key!) : Number(index),
  );

export const text = (path: Path): string =>
  path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`))
    .join("")
    .replace(/^\./, "");

/** The node at a path, aliases not followed. */
export function nodeAt({ document }: Reading, path: Path): Node | undefined {
  let node: unknown = document.contents;
  for (const step of path) {
    if (isMap(node)) node = pairOf(node.items, step)?.value;
    else if (isSeq(node) && typeof step === "number") node = node.items[step];
    else return undefined;
  }
  return (node as Node | null) ?? undefined;
}

/** The key and value at a path that ends in a key. */
export function pairAt(reading: Reading, path: Path): Pair<Node, Node | null> | undefined {
  const parent = nodeAt(reading, path.slice(0, -1));
  return isMap(parent) ? pairOf(parent.items, path.at(-1)!) : undefined;
}

const pairOf = (items: Pair<unknown, unknown>[], key: string | number) =>
  items.find((pair) => isScalar(pair.key) && String(pair.key.value) === String(key)) as
    Pair<Node, Node | null> | undefined;

/** Where what is at a path stands: its key and value, or the nearest thing around it. */
export function rangeOf(reading: Reading, path: Path): [number, number] {
  for (let length = path.length; length > 0; length--) {
    const found = path.slice(0, length);
    const key = pairAt(reading, found)?.key.range;
    const node = nodeAt(reading, found);
    const end = isScalar(node) ? node.range?.[1] : undefined;
    if (key) return [key[0], end ?? key[1]];
    if (node?.range) return [node.range[0], end ?? node.range[0]];
  }
  return [0, 0];
}

/** The place at which somebody goes on to write what is at a path. */
export function placeOf(reading: Reading, path: Path): number {
  const node = nodeAt(reading, path);
  return isScalar(node) && node.range ? node.range[1] : rangeOf(reading, path)[0];
}

/** The path of the innermost thing at an offset. */
export function pathAt({ document }: Reading, offset: number): Path {
  let best: Path = [];
  visit(document, (_, node, ancestors) => {
    const within = isPair(node)
      ? covers(node.key, offset) || covers(node.value, offset)
      : covers(node, offset);
    if (!within) return visit.SKIP;
    best = pathOf([...ancestors, node]);
    return undefined;
  });
  return best;
}

function covers(node: unknown, offset: number): boolean {
  if (!isScalar(node) && !isCollection(node) && !isAlias(node) && node !== undefined)
    return typeof node === "object" && node !== null; // the document itself
  return !!node?.range && node.range[0] <= offset && offset <= node.range[2];
}

function pathOf(chain: readonly unknown[]): Path {
  const path: (string | number)[] = [];
  chain.forEach((each, index) => {
    const around = chain[index - 1];
    if (isPair(each)) path.push(isScalar(each.key) ? String(each.key.value) : String(each.key));
    else if (isSeq(around)) path.push(around.items.indexOf(each));
  });
  return path;
}

/** How many comments a text has. */
export function comments({ document }: Reading): number {
  let count = lineCount(document.commentBefore) + lineCount(document.comment);
  visit(document, (_, node) => {
    if (isScalar(node) || isCollection(node) || isAlias(node))
      count += lineCount(node.commentBefore) + lineCount(node.comment);
  });
  return count;
}

const lineCount = (text: string | null | undefined): number =>
  typeof text === "string" ? text.split("\n").filter((line) => line.trim()).length : 0;
