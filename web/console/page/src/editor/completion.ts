import { unlinked, type Grammar, type Member, type Schema } from "../draft/grammar";
import { scalar } from "../draft/edits";
import { member, pathAt, read, type Path } from "../draft/yaml";

/** Something that can be written at a place. */
export interface Offer {
  label: string;
  apply: string;
  detail: string;
  info: string;
  /** Those that are needed come first. */
  needed: boolean;
  is: "key" | "value";
}

/** What there is under a name that can be written at a place: fields, connections, pipelines. */
export type Names = (path: Path, value: unknown) => { name: string; detail: string }[];

const AT = "headrace_here";
// A key that a value is written for: `function: `, also behind the dash of an item or within braces.
const VALUE = /(?:^|[\s{,[-])"?([\w-]+)"?:[ \t]+["']?$/;

/** What can be written at an offset, and where the word begins that it replaces. */
export function offers(
  text: string,
  offset: number,
  grammar: Grammar,
  names: Names,
): { from: number; options: Offer[] } | undefined {
  const line = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  if (/(^|\s)#/.test(line)) return undefined;
  const word = /[\w.$-]*$/.exec(line)![0].replace(/^-+/, "");
  const from = offset - word.length;
  const before = line.slice(0, line.length - word.length);
  const isValue = VALUE.test(before);
  // The text, with something in the place of the word that is being written, is YAML most of the time.
  const rest = text.slice(offset).replace(/^[\w.-]+/, "");
  const filled = read(text.slice(0, from) + (isValue ? AT : `${AT}: ~`) + rest);
  const path = pathAt(filled, from);
  const value = filled.value ?? filled.document.toJS();
  if (isValue) return { from, options: values(grammar, path, value, names) };
  const around = path.at(-1) === AT ? path.slice(0, -1) : path;
  const there = member(value, around);
  const schema = grammar.at(around, withoutMark(there) ? value : { ...(value as object) });
  if (!schema) return undefined;
  const isItem = /^\s*(?:- +)+$/.test(before) || /[[,]\s*$/.test(before);
  if (isItem && !schema.properties && !schema.discriminator && !schema.oneOf)
    return { from, options: values(grammar, around, value, names) };
  const taken = new Set(typeof there === "object" && there !== null ? Object.keys(there) : []);
  const isFlow = /[{,]\s*$/.test(before);
  const indent = before.replace(/-/g, " ").length;
  const found = schema.discriminator
    ? kinds(grammar, schema)
    : keys(grammar, schema, taken, isFlow ? -1 : indent);
  return { from, options: found };
}

const withoutMark = (value: unknown): boolean => typeof value === "object" && value !== null;

function keys(grammar: Grammar, schema: Schema, taken: Set<string>, indent: number): Offer[] {
  return grammar
    .members(schema)
    .filter(({ name }) => !taken.has(name))
    .map((each) => ({
      label: each.name,
      apply: each.name + behind(grammar, each, indent),
      detail: each.noun.length > 40 ? `${each.noun.slice(0, 39)}…` : each.noun,
      info: unlinked(each.description),
      needed: each.required,
      is: "key",
    }));
}

/** What follows a key: a blank, or a line of its own where an object or a list is taken. */
function behind(grammar: Grammar, { schema }: Member, indent: number): string {
  const { type, properties, discriminator, items } = grammar.resolve(schema);
  if (indent < 0) return ": ";
  const deeper = `:\n${" ".repeat(indent + 2)}`;
  if (items && [type].flat().includes("array")) return `${deeper}- `;
  return properties || discriminator ? deeper : ": ";
}

function kinds(grammar: Grammar, schema: Schema): Offer[] {
  return grammar.kinds(schema).map(({ name, description }) => ({
    label: name,
    apply: `${schema.discriminator!.propertyName}: ${name}`,
    detail: "",
    info: firstSentences(description),
    needed: false,
    is: "key",
  }));
}

function values(grammar: Grammar, path: Path, value: unknown, names: Names): Offer[] {
  const around = path.slice(0, -1);
  const union = grammar.resolve(unionAt(grammar, around, value));
  const isKind = union.discriminator?.propertyName === path.at(-1);
  if (isKind)
    return grammar.kinds(union).map(({ name, description }) => ({
      ...plain(name),
      info: firstSentences(description),
    }));
  const schema = grammar.at(path, value);
  const standard = schema?.default;
  const choices = grammar
    .choices(schema)
    .map((word) => ({ ...plain(word), detail: String(standard) === word ? "if left out" : "" }));
  const named = names(path, value).map(({ name, detail }) => ({
    ...plain(name),
    apply: scalar(name, "text"),
    detail,
  }));
  return [...choices, ...named];
}

/** The union that a component is of: asked without its kind, which is what is being written. */
function unionAt(grammar: Grammar, path: Path, value: unknown): Schema | undefined {
  const last = path.at(-1);
  const schema = path.length ? grammar.at(path.slice(0, -1), value) : undefined;
  if (typeof last === "number") return schema?.items;
  return grammar.members(schema).find(({ name }) => name === last)?.schema;
}

const plain = (label: string): Offer => ({
  label,
  apply: label,
  detail: "",
  info: "",
  needed: false,
  is: "value",
});

/** The first paragraph of a description, on one line. */
export const firstSentences = (description: string | undefined): string =>
  (description ?? "").split("\n\n")[0]!.replace(/\s+/g, " ");
