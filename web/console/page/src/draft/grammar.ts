import { member as valueAt, type Path } from "./yaml";

/** What the served description says of a value: JSON Schema, as far as configs use it. */
export interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  const?: unknown;
  enum?: readonly unknown[];
  default?: unknown;
  description?: string;
  properties?: Record<string, Schema>;
  required?: readonly string[];
  additionalProperties?: Schema | boolean;
  items?: Schema;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  minimum?: number;
  maximum?: number;
  discriminator?: { propertyName: string; mapping: Record<string, string> };
}

/** A key that an object may have, and what it takes. */
export interface Member {
  name: string;
  schema: Schema;
  description: string;
  required: boolean;
  /** What a value of it is, in words: `integer ≥ 1`. */
  noun: string;
}

/** What may stand at a place of a config, asked of the served OpenAPI document. */
export class Grammar {
  readonly root: Schema = { $ref: "#/components/schemas/Config" };

  constructor(readonly schemas: Record<string, Schema>) {}

  resolve(schema: Schema | undefined): Schema {
    if (!schema) return {};
    if (schema.$ref) {
      const { $ref, ...beside } = schema;
      return { ...this.resolve(this.schemas[$ref.split("/").at(-1)!]), ...beside };
    }
    const other = schema.anyOf?.find((each) => each.type !== "null");
    return other ? { ...this.resolve(other), ...without(schema, "anyOf") } : schema;
  }

  /** The schema at a path, of a union the alternative that the value is of. */
  at(path: Path, value: unknown): Schema | undefined {
    let schema = this.narrow(this.root, value);
    for (const [index, step] of path.entries()) {
      const next = typeof step === "number" ? schema.items : this.#property(schema, step);
      if (!next) return undefined;
      schema = this.narrow(next, valueAt(value, path.slice(0, index + 1)));
    }
    return schema;
  }

  /** The alternative of a union that a value is of, by its kind or by the keys it has. */
  narrow(union: Schema, value: unknown): Schema {
    const schema = this.resolve(union);
    const keys =
      typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
    if (schema.discriminator) {
      const kind = String(keys[schema.discriminator.propertyName]);
      const $ref = schema.discriminator.mapping[kind];
      return $ref ? this.narrow({ $ref }, value) : schema;
    }
    if (!schema.oneOf) return schema;
    const fits = schema.oneOf
      .map((each) => this.resolve(each))
      .find((each) => each.required?.every((key) => keys[key] !== undefined));
    return fits ? { ...fits, description: schema.description } : schema;
  }

  /** The kinds of a union, each with what it is. */
  kinds(union: Schema | undefined): { name: string; description: string }[] {
    return Object.entries(this.resolve(union).discriminator?.mapping ?? {}).map(([name, $ref]) => ({
      name,
      description: this.resolve({ $ref }).description ?? "",
    }));
  }

  /** The keys of an object; of a union that is not decided those of all its alternatives. */
  members(schema: Schema | undefined): Member[] {
    if (!schema) return [];
    if (schema.discriminator) {
      const kinds = this.kinds(schema).map(({ name }) => name);
      const type = { enum: kinds, description: `One of ${kinds.join(", ")}.` };
      return [this.#member(schema.discriminator.propertyName, type, true)];
    }
    const alternatives = schema.oneOf?.map((each) => this.resolve(each)) ?? [schema];
    const found = new Map<string, Member>();
    for (const each of alternatives)
      for (const [name, property] of Object.entries(each.properties ?? {}))
        if (this.resolve(property).type !== "null") {
          const required = alternatives.every((one) => one.required?.includes(name));
          found.set(name, this.#member(name, property, required));
        }
    return [...found.values()];
  }

  /** What can be chosen for a value. */
  choices(schema: Schema | undefined): string[] {
    const resolved = this.resolve(schema);
    const { enum: words, const: word } = resolved;
    if (typesOf(resolved).join() === "boolean") return ["true", "false"];
    if (word !== undefined) return [String(word)];
    return (words ?? []).filter((each) => each !== null).map(String);
  }

  noun(property: Schema): string {
    const schema = this.resolve(property);
    if (schema.const !== undefined) return String(schema.const);
    if (schema.enum) return this.choices(schema).join(" | ");
    if (schema.discriminator)
      return this.kinds(schema)
        .map(({ name }) => name)
        .join(" | ");
    const type = typesOf(schema).join(" | ");
    if (type === "array") return `list of ${schema.items ? this.#item(schema.items) : "anything"}`;
    const { minimum, maximum } = schema;
    const bounds = [
      minimum !== undefined && `≥ ${minimum}`,
      maximum !== undefined && `≤ ${maximum}`,
    ].filter(Boolean);
    return [type || "anything", bounds.join(", ")].filter(Boolean).join(" ");
  }

  #item(property: Schema): string {
    return `${this.noun(property)}${mayBeNull(this.resolve(property)) ? " | null" : ""}`;
  }

  /** What has to be written for a value at the least. */
  skeleton(property: Schema): unknown {
    const schema = this.resolve(property);
    const first = schema.oneOf?.[0];
    if (first && !schema.discriminator) return this.skeleton(first);
    switch (typeOf(schema)) {
      case "object":
        return Object.fromEntries(
          (schema.required ?? []).map((key) => [
            key,
            this.skeleton(schema.properties?.[key] ?? {}),
          ]),
        );
      case "array":
        return schema.items && typeOf(this.resolve(schema.items)) !== "string"
          ? [this.skeleton(schema.items)]
          : [];
      case "integer":
      case "number":
        return Math.max(schema.minimum ?? 0, 0);
      default:
        return schema.const ?? schema.enum?.[0] ?? this.#firstKind(schema) ?? "";
    }
  }

  #firstKind(schema: Schema): unknown {
    const $ref = Object.values(schema.discriminator?.mapping ?? {})[0];
    return $ref && this.skeleton({ $ref });
  }

  #property(schema: Schema, step: string): Schema | undefined {
    const further = schema.additionalProperties;
    return (
      this.members(schema).find(({ name }) => name === step)?.schema ??
      (typeof further === "object" ? further : undefined)
    );
  }

  #member(name: string, schema: Schema, required: boolean): Member {
    const description = schema.description ?? this.resolve(schema).description ?? "";
    return { name, schema, description, required, noun: this.noun(schema) };
  }
}

/** The types that a value may be of, if it is not null. */
export const typesOf = ({ type }: Schema): string[] =>
  [type ?? []].flat().filter((each) => each !== "null");

/** A description without the addresses of its links, which are those of pages. */
export const unlinked = (text: string): string => text.replace(/\[([^\]]+)\]\([^)\s]+\)/g, "$1");

/** Whether null is one of its types: of a key it is as good as nothing, of an item it is not. */
export const mayBeNull = ({ type }: Schema): boolean => [type ?? []].flat().includes("null");

/** The first of them: most have one. */
export const typeOf = (schema: Schema): string | undefined => typesOf(schema)[0];

function without(schema: Schema, key: keyof Schema): Schema {
  const { [key]: _, ...rest } = schema;
  return rest;
}
