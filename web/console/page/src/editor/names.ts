import type { Bucket, ComponentDoc, Pipeline } from "../api/client";
import type { Names } from "./completion";
import type { Field } from "../draft/fields";
import { named } from "../draft/naming";
import type { Path } from "../draft/yaml";

export interface There {
  connections: readonly { name: string; type: string }[];
  pipelines: readonly Pipeline[];
  buckets: readonly Bucket[];
  /** The fields that reach each stage, if some messages have been read. */
  fields: readonly (readonly Field[])[];
}

/** The names that can be written at a place, of what the server has. */
export const names =
  (docs: readonly ComponentDoc[], self: string | undefined, there: () => There): Names =>
  (path, value) => {
    const naming = named(docs, path, value);
    const { connections, pipelines, buckets, fields } = there();
    switch (naming?.what) {
      case "connection":
        return connections
          .filter(({ type }) => type === naming.kind)
          .map(({ name, type }) => ({ name, detail: type }));
      case "pipeline":
        return pipelines
          .filter(({ id }) => id !== self)
          .map(({ id }) => ({ name: id, detail: "pipeline" }));
      case "bucket":
        return buckets.map(({ name }) => ({ name, detail: "bucket" }));
      case "field":
        return reaching(fields, path).map(({ path: name, type, example }) => ({
          name,
          detail: `${type}, ${example}`,
        }));
      default:
        return [];
    }
  };

/** The fields of the messages that come to the component at a path. */
function reaching(fields: readonly (readonly Field[])[], [family, index]: Path): readonly Field[] {
  if (family === "transforms" && typeof index === "number") return fields[index] ?? [];
  return (family === "outputs" ? fields.at(-1) : fields[0]) ?? [];
}
