import { describe, expect, test } from "vitest";
import { connection, kinds } from "../src/connections/fields";
import { parts } from "../src/connections/references";

const schemas = {
  CreateConnectionRequest: { discriminator: { mapping: { bus: "#/components/schemas/Bus" } } },
  Bus: {
    description: "A bus.\n\nMore of it.",
    required: ["id", "type", "host"],
    properties: {
      id: { type: "string" },
      type: { const: "bus" },
      host: { type: "string", description: "Where." },
      port: { type: ["integer", "null"], default: 7 },
      tls: { type: ["boolean", "null"], default: false },
      mode: { enum: ["a", "b", null] },
    },
  },
};
const [bus] = kinds({ components: { schemas } });

describe("the boxes of a connection", () => {
  test("are read off the description", () => {
    expect(bus!.doc).toBe("A bus.");
    expect(bus!.fields.map(({ name, sort, required }) => [name, sort, required])).toEqual([
      ["host", "text", true],
      ["port", "number", false],
      ["tls", "switch", false],
      ["mode", "choice", false],
    ]);
    expect(bus!.fields[1]!.usual).toBe("7");
  });

  test("make a connection without what is empty", () => {
    expect(connection(bus!, { host: "h", port: "", tls: false, mode: "" })).toEqual({
      type: "bus",
      host: "h",
    });
    expect(connection(bus!, { host: "", port: "80", tls: true, mode: "a" })).toEqual({
      type: "bus",
      host: "",
      port: 80,
      tls: true,
      mode: "a",
    });
  });

  test("hand on what is no number, so that the server can say so", () => {
    expect(connection(bus!, { host: "h", port: "8x" })).toMatchObject({ port: "8x" });
  });
});

test("references are told from what stands around them", () => {
  expect(parts("redis://${USER}:x@h")).toEqual([
    { text: "redis://", reference: false },
    { text: "${USER}", reference: true },
    { text: ":x@h", reference: false },
  ]);
  expect(parts("${A}")).toEqual([{ text: "${A}", reference: true }]);
});
