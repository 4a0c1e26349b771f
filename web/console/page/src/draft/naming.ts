import type { ComponentDoc, FieldDoc } from "../api/client";
import { member, type Path } from "./yaml";

/** What a text of a config names, so that the page can offer what there is. */
export type Naming =
  { what: "connection"; kind: string } | { what: "pipeline" | "bucket" | "field" };

const FAMILIES: Record<string, ComponentDoc["family"]> = {
  inputs: "input",
  transforms: "transform",
  outputs: "output",
};
type FieldType = string | { [word: string]: unknown };
type Described = { name: string; field_type: FieldType };

/** What the text at a path names; nothing where it is any text. */
export function named(
  docs: readonly ComponentDoc[],
  path: Path,
  value: unknown,
): Naming | undefined {
  if (path.at(-1) === "bucket") return { what: "bucket" };
  if (path.length === 2 && path[0] === "state" && path[1] === "key") return { what: "field" };
  const [family, index, ...rest] = path;
  const kind = kindOf(member(value, [family!, index!]));
  const doc = docs.find((each) => each.family === FAMILIES[family!] && each.kind === kind);
  if (!doc || !rest.length) return undefined;
  const variants = doc.variants.map(({ name, fields }) => ({
    name,
    field_type: { object: fields },
  }));
  let fields: readonly Described[] = [...doc.fields, ...variants];
  let type: FieldType | undefined;
  for (const [at, step] of rest.entries()) {
    if (typeof step === "number")
      type = (type as { list?: FieldDoc } | undefined)?.list?.field_type as FieldType;
    else type = fields.find(({ name }) => name === step)?.field_type;
    fields = fieldsOf(type, member(value, path.slice(0, at + 3)));
  }
  if (type === "message_field") return { what: "field" };
  if (type === "pipeline_id") return { what: "pipeline" };
  if (typeof type === "object" && typeof type.connection === "string")
    return { what: "connection", kind: type.connection };
  return undefined;
}

function fieldsOf(type: FieldType | undefined, value: unknown): readonly FieldDoc[] {
  if (typeof type !== "object") return [];
  if (Array.isArray(type.object)) return type.object as FieldDoc[];
  const union = type.union as { variants: { name: string; fields: FieldDoc[] }[] } | undefined;
  return union?.variants.find(({ name }) => name === kindOf(value))?.fields ?? [];
}

export const kindOf = (component: unknown): string | undefined => {
  const type = member(component, ["type"]);
  return typeof type === "string" ? type : undefined;
};
