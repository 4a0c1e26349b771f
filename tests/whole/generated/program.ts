// A client whose types are generated: what it must not write is marked, and the compiler finds it.
import type { components, paths } from "./api";

type Schemas = components["schemas"];
type Answer<Operation> = Operation extends {
  responses: { 200: { content: { "application/json": infer Body } } };
}
  ? Body
  : never;

const config: Schemas["Config"] = {
  id: "typed",
  inputs: [{ type: "http" }],
  transforms: [
    { type: "filter", Numeric: { field: "celsius", operator: "greater_than", value: 20 } },
    {
      type: "map",
      mappings: [
        { type: "copy", from: "celsius", as: "warm" },
        { type: "constant", as: "unit", value: { type: "text", value: "C" } },
      ],
    },
    { type: "reducer", aggregations: [{ function: "max", field: "warm", as: "most" }] },
  ],
  outputs: [{ type: "stdout" }],
};

// @ts-expect-error: there is no such kind
const misspelt: Schemas["Transform"] = { type: "fitler" };
// @ts-expect-error: a filter has one condition
const both: Schemas["FilterTransform"] = {
  type: "filter",
  Numeric: { field: "a", operator: "equal_to", value: 1 },
  String: { field: "a", operator: "equal_to", value: "1" },
};
// @ts-expect-error: a kafka connection has no root
const mixed: Schemas["CreateConnectionRequest"] = { id: "disk", type: "kafka", root: "data" };

const disk: Schemas["CreateConnectionRequest"] = { id: "disk", type: "file", root: "data" };

function told(answer: Schemas["DryRunResponse"]): string {
  // @ts-expect-error: only one of the outcomes has batches
  const early = answer.batches;
  switch (answer.outcome) {
    case "emitted":
      return `emitted ${JSON.stringify(answer.batches)}`;
    case "failed":
      return `failed to ${answer.stage} at line ${answer.line}`;
  }
}

export async function run(base: string): Promise<string[]> {
  async function asked<Body>(method: string, path: keyof paths | string, body?: unknown) {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(base + path, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    return (answer.status === 204 ? null : await answer.json()) as Body;
  }
  async function tried(code: string) {
    const body: Schemas["DryRunRequest"] = {
      source: { type: "inline", code },
      messages: [{ n: 1 }],
    };
    type Tried = Answer<paths["/api/scripts/dry-run"]["post"]>;
    return told(await asked<Tried>("POST", "/api/scripts/dry-run", body));
  }

  const filed = await asked<Schemas["CreateConnectionRequest"]>("POST", "/api/connections", disk);
  const made = await asked<Schemas["PipelineDto"]>("POST", "/api/pipelines", config);
  const all = await asked<Answer<paths["/api/pipelines"]["get"]>>("GET", "/api/pipelines");
  const [filter] = all.find(({ id }) => id === made.id)?.config.transforms ?? [];
  const outcomes = [await tried("emit(msg);"), await tried("emit(;")];
  await asked<null>("DELETE", `/api/pipelines/${made.id}`);
  return [filed.type, made.status, filter.type === "filter" ? "filter" : "", ...outcomes];
}
