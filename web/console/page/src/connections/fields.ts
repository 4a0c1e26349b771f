/** What a connection is made of, read off the description of the API. */
export interface Field {
  name: string;
  doc: string;
  required: boolean;
  sort: "text" | "number" | "switch" | "choice";
  choices: string[];
  /** What counts where nothing is written; empty: nothing. */
  usual: string;
}
export interface Kind {
  type: string;
  doc: string;
  fields: Field[];
}
/** What is written in the boxes, by field. */
export type Written = Record<string, string | boolean>;

interface Schema {
  description?: string;
  type?: string | string[];
  enum?: (string | null)[];
  default?: unknown;
  const?: string;
  required?: string[];
  properties?: Record<string, Schema>;
  discriminator?: { mapping: Record<string, string> };
}
export interface OpenApi {
  components: { schemas: Record<string, unknown> };
}

/** The kinds of connections, in the order of the description. */
export function kinds({ components }: OpenApi): Kind[] {
  const schema = (ref: string) => components.schemas[ref.split("/").at(-1)!] as Schema;
  const { mapping } = schema("CreateConnectionRequest").discriminator!;
  return Object.entries(mapping).map(([type, ref]) => {
    const { description = "", properties = {}, required = [] } = schema(ref);
    const fields = Object.entries(properties)
      .filter(([name]) => name !== "type" && name !== "id")
      .map(([name, each]) => field(name, each, required.includes(name)));
    return { type, doc: description.split("\n\n")[0]!, fields };
  });
}

function field(name: string, schema: Schema, required: boolean): Field {
  const types = [schema.type ?? []].flat();
  const choices = (schema.enum ?? []).filter((choice) => choice !== null);
  const sort = choices.length
    ? "choice"
    : types.includes("boolean")
      ? "switch"
      : types.includes("integer") || types.includes("number")
        ? "number"
        : "text";
  const usual = schema.default === undefined ? "" : String(schema.default);
  return { name, doc: schema.description ?? "", required, sort, choices, usual };
}

/** The connection that is written: a box without anything in it is no key, unless it has to be one. */
export function connection(kind: Kind, written: Written): Record<string, unknown> {
  const entries = kind.fields.flatMap<[string, unknown]>(({ name, sort, required }) => {
    const value = written[name];
    if (sort === "switch") return value === true ? [[name, true]] : [];
    if (typeof value !== "string" || (value === "" && !required)) return [];
    // What is no number goes as it is: the server says what would be one.
    return [[name, sort === "number" && /^-?\d+$/.test(value) ? Number(value) : value]];
  });
  return { type: kind.type, ...Object.fromEntries(entries) };
}
