import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  visit,
  type Document,
  type Node,
} from "yaml";

/** The largest body that the server reads, in characters; aliases can make more of a short text. */
const LARGEST = 2 * 1024 * 1024;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** A document as JSON; numbers keep the digits that they were written with. */
export function toJson(document: Document.Parsed, from: unknown = document.contents): string {
  let left = LARGEST;
  const write = (node: unknown): string => {
    const written = written_(node);
    if ((left -= written.length) < 0) throw new RangeError("the config is larger than 2 MiB");
    return written;
  };
  const written_ = (node: unknown): string => {
    if (isAlias(node)) return write(node.resolve(document));
    if (isMap(node)) {
      const pairs = node.items.map(
        ({ key, value }) => `${JSON.stringify(keyOf(key))}:${write(value)}`,
      );
      return `{${pairs.join(",")}}`;
    }
    if (isSeq(node)) return `[${node.items.map(write).join(",")}]`;
    return isScalar(node) ? scalar(node.value, node.source) : "null";
  };
  return write(from);
}

const keyOf = (key: unknown): string =>
  isScalar(key) ? (key.source ?? String(key.value)) : String(key);

function scalar(value: unknown, source: string | undefined): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number")
    return source && NUMBER.test(source) ? source : JSON.stringify(value);
  return JSON.stringify(value ?? null);
}

/** What the answer of a server has under a key, as YAML in the style of people: no braces, no quotes. */
export function toYaml(json: string, ...keys: string[]): string {
  const document = parseDocument(json, { intAsBigInt: true });
  const found = keys.length ? (document.getIn(keys, true) as Node | undefined) : document.contents;
  visit(document, (_, node) => {
    if (isMap(node) || isSeq(node)) node.flow = node.items.length === 0;
    else if (isScalar(node)) delete node.type;
  });
  document.contents = (found ?? null) as typeof document.contents;
  return document.toString({ lineWidth: 96 });
}
