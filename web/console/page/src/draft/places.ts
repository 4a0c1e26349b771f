import { isMap, isScalar, isSeq, type Node, type YAMLMap, type YAMLSeq } from "yaml";

/** Where an entry begins; of a block list that is its dash. */
export function starts(text: string, parent: YAMLMap | YAMLSeq, index: number): number {
  const item = parent.items[index];
  const node = isMap(parent) ? (item as { key: Node }).key : (item as Node);
  const at = node.range![0];
  return isSeq(parent) && !parent.flow ? text.lastIndexOf("-", at - 1) : at;
}

/** Where an entry of a collection, the last one if none is named, has ended: behind its last word. */
export function lastEnd(
  text: string,
  parent: YAMLMap | YAMLSeq,
  index = parent.items.length - 1,
): number {
  const item: unknown = parent.items[index];
  if (!item) return parent.range![1];
  const isPair = isMap(parent);
  const node = (isPair ? (item as { value: Node | null }).value : item) as Node | null;
  if ((isMap(node) || isSeq(node)) && !node.flow && node.items.length) return lastEnd(text, node);
  if (node?.range && node.range[0] < node.range[1])
    return isScalar(node) ? ended(text, node) : node.range[1];
  const key = isPair ? (item as { key: Node }).key : node!;
  return isPair ? text.indexOf(":", key.range![1]) + 1 : key.range![1];
}

/** Where a scalar has ended, without the blanks that follow; a block of text ends with its line. */
export function ended(text: string, node: Node): number {
  const [from, to] = node.range!;
  return text[to - 1] === "\n" ? to : from + text.slice(from, to).trimEnd().length;
}

export const lineStart = (text: string, at: number): number => text.lastIndexOf("\n", at - 1) + 1;
export const lineEnd = (text: string, at: number): number => {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
};
export const columnOf = (text: string, at: number): number => at - lineStart(text, at);
/** Whether empty brackets are all that stands behind a key of a block. */
export const isRow = (text: string, at: number): boolean =>
  /^[ -]*[^{[,]+: *$/.test(text.slice(lineStart(text, at), at));
