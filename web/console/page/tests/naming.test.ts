import { expect, test } from "vitest";
import type { ComponentDoc } from "../src/api/client";
import { named } from "../src/draft/naming";
import { read } from "../src/draft/yaml";

const field = (name: string, field_type: unknown) => ({ name, field_type });
const CALLED = "exists | any";
/** Conditions as they are served: inside themselves they are any JSON, called as they are. */
const conditions = (field_type: unknown) => ({
  list: { ...field("", field_type), type_name: CALLED },
});
const WHEN = conditions({
  union: {
    tag: "type",
    variants: [
      { name: "exists", fields: [field("field", "message_field")] },
      { name: "any", fields: [field("conditions", conditions("json"))] },
    ],
  },
});
const DOCS = [
  { family: "input", kind: "kafka", fields: [field("connection", { connection: "kafka" })] },
  { family: "input", kind: "pipeline", fields: [field("upstream", "pipeline_id")] },
  {
    family: "transform",
    kind: "reducer",
    fields: [
      field("group_by", { list: field("", "message_field") }),
      field("aggregations", {
        list: field("", { object: [field("as", "text"), field("field", "message_field")] }),
      }),
    ],
  },
  {
    family: "transform",
    kind: "map",
    fields: [
      field("mappings", {
        list: field("", {
          union: {
            tag: "type",
            variants: [{ name: "copy", fields: [field("from", "message_field")] }],
          },
        }),
      }),
    ],
  },
  {
    family: "transform",
    kind: "filter",
    fields: [field("when", WHEN)],
    variants: [{ name: "Numeric", fields: [field("field", "message_field")] }],
  },
].map((each) => ({ variants: [], ...each })) as unknown as ComponentDoc[];

const what = (text: string, ...path: (string | number)[]): unknown =>
  named(DOCS, path, read(text).value);

test("a text is known to name something, however deep it stands", () => {
  const reducer = "transforms: [{ type: reducer, aggregations: [{ as: a }] }]";
  const toField = { what: "field" };
  expect(what(reducer, "transforms", 0, "aggregations", 0, "field")).toEqual(toField);
  expect(what(reducer, "transforms", 0, "aggregations", 0, "as")).toBeUndefined();
  expect(what(reducer, "transforms", 0, "group_by", 0)).toEqual(toField);
  const map = "transforms: [{ type: map, mappings: [{ type: copy }] }]";
  expect(what(map, "transforms", 0, "mappings", 0, "from")).toEqual(toField);
  const filter = "transforms: [{ type: filter, Numeric: {} }]";
  expect(what(filter, "transforms", 0, "Numeric", "field")).toEqual(toField);
});

test("names of connections, pipelines and buckets are told apart", () => {
  const kafka = "inputs: [{ type: kafka }]";
  expect(what(kafka, "inputs", 0, "connection")).toEqual({ what: "connection", kind: "kafka" });
  const pipeline = "inputs: [{ type: pipeline }]";
  expect(what(pipeline, "inputs", 0, "upstream")).toEqual({ what: "pipeline" });
  expect(what("state: {}", "state", "bucket")).toEqual({ what: "bucket" });
});

test("a field is named however deep conditions lie inside each other", () => {
  const text = (inner: string) => `transforms: [{ type: filter, when: [${inner}] }]`;
  const when = ["transforms", 0, "when", 0] as const;
  const toField = { what: "field" };
  expect(what(text("{ type: exists }"), ...when, "field")).toEqual(toField);
  const once = "{ type: any, conditions: [{ type: exists }] }";
  expect(what(text(once), ...when, "conditions", 0, "field")).toEqual(toField);
  const twice = `{ type: any, conditions: [{ type: exists }, ${once}] }`;
  const inner = [...when, "conditions", 1, "conditions", 0] as const;
  expect(what(text(twice), ...inner, "field")).toEqual(toField);
  expect(what(text(twice), ...inner, "type")).toBeUndefined();
});
