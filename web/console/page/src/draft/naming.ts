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
type Described = { name: string; type_name?: string; field_type: FieldType };

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
  // What is inside its own kind is described once, further out, and found by what it is called.
  const unions = new Map<string | undefined, FieldType>();
  for (const [at, step] of rest.entries()) {
    const described: Described | undefined =
      typeof step === "number"
        ? ((type as { list?: FieldDoc } | undefined)?.list as Described | undefined)
        : fields.find(({ name }) => name === step);
    const inside = described?.type_name;
    type = described?.field_type;
    if (type === "json") type = unions.get(inside) ?? type;
    else if (typeof type === "object" && type.union) unions.set(inside, type);
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
