/** A description of configs in small, in the shapes of the served one. */
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const orNull = (name: string) => ({ anyOf: [reference(name), { type: "null" }] });
const text = (description: string) => ({ type: "string", description });

export const SCHEMAS = {
  Config: {
    type: "object",
    properties: {
      id: { ...text("What it is called."), type: ["string", "null"] },
      inputs: { type: "array", items: reference("Input") },
      transforms: { type: "array", items: reference("Transform") },
    },
    required: ["inputs"],
  },
  Input: {
    oneOf: [reference("Kafka"), reference("Http")],
    discriminator: {
      propertyName: "type",
      mapping: { kafka: "#/components/schemas/Kafka", http: "#/components/schemas/Http" },
    },
  },
  Kafka: {
    type: "object",
    properties: {
      type: { const: "kafka" },
      connection: text("Connection to read from."),
      start_at: { enum: ["earliest", "latest", null], default: "latest" },
    },
    required: ["type", "connection"],
    description: "Read a topic.\n\nAs a member of a group.",
  },
  Http: { type: "object", properties: { type: { const: "http" } }, required: ["type"] },
  Transform: {
    oneOf: [reference("Buffer"), reference("Filter"), reference("Reducer")],
    discriminator: {
      propertyName: "type",
      mapping: {
        buffer: "#/components/schemas/Buffer",
        filter: "#/components/schemas/Filter",
        reducer: "#/components/schemas/Reducer",
      },
    },
  },
  Buffer: {
    type: "object",
    properties: {
      type: { const: "buffer" },
      size: { type: ["integer", "null"], minimum: 1, description: "Hand on so many." },
      until: { description: "A gate.", ...orNull("Gate") },
    },
    required: ["type"],
  },
  Gate: { type: "object", properties: { bucket: text("A bucket.") } },
  Filter: {
    type: "object",
    properties: { type: { const: "filter" } },
    required: ["type"],
    oneOf: [reference("NumericFilter"), reference("StringFilter")],
    description: "Hand on what matches.",
  },
  NumericFilter: {
    type: "object",
    properties: {
      type: { const: "filter" },
      Numeric: reference("Numeric"),
      String: { type: "null" },
    },
    required: ["type", "Numeric"],
  },
  StringFilter: {
    type: "object",
    properties: {
      type: { const: "filter" },
      Numeric: { type: "null" },
      String: reference("String"),
    },
    required: ["type", "String"],
  },
  Numeric: {
    type: "object",
    properties: {
      field: text("Field to look at."),
      operator: { type: "string", enum: ["greater_than", "less_than"] },
      value: { type: "number" },
    },
    required: ["field", "operator", "value"],
  },
  String: {
    type: "object",
    properties: { field: text("Field to look at."), operator: { enum: ["equal_to", "contains"] } },
    required: ["field", "operator"],
  },
  Reducer: {
    type: "object",
    properties: {
      type: { const: "reducer" },
      group_by: { type: "array", items: { type: "string" } },
      aggregations: { type: "array", items: reference("Aggregation") },
    },
    required: ["type", "aggregations"],
  },
  Aggregation: {
    type: "object",
    properties: {
      function: { type: "string", enum: ["sum", "avg", "count"] },
      as: text("Field of the result."),
    },
    required: ["function", "as"],
  },
};

const conditions = { type: "array", items: reference("Condition"), description: "What it asks." };

/** The same, where what an input takes is told by conditions, which lie inside each other. */
export const WITH_CONDITIONS = {
  ...SCHEMAS,
  Http: {
    type: "object",
    properties: { type: { const: "http" }, when: conditions },
    required: ["type"],
  },
  Condition: {
    oneOf: [reference("OneOfCondition"), reference("AnyCondition"), reference("NotCondition")],
    discriminator: {
      propertyName: "type",
      mapping: {
        one_of: "#/components/schemas/OneOfCondition",
        any: "#/components/schemas/AnyCondition",
        not: "#/components/schemas/NotCondition",
      },
    },
  },
  OneOfCondition: {
    type: "object",
    properties: {
      type: { const: "one_of" },
      field: text("Field to look at."),
      values: { type: "array", items: { type: ["string", "number", "boolean"] } },
    },
    required: ["type", "field", "values"],
  },
  AnyCondition: {
    type: "object",
    properties: { type: { const: "any" }, conditions },
    required: ["type", "conditions"],
  },
  NotCondition: {
    type: "object",
    properties: { type: { const: "not" }, conditions },
    required: ["type", "conditions"],
  },
};
