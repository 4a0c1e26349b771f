import type { components } from "./schema";

type Schemas = components["schemas"];
export type Pipeline = Schemas["PipelineDto"];
export type Diagnostic = Schemas["Diagnostic"];
export type Settings = Schemas["SettingsDto"];
export type History = Schemas["PipelineHistory"];
export type LeftMessage = Schemas["LeftMessage"];
export type Me = Schemas["AuthDto"];
export type Bucket = Schemas["BucketSummary"];
export type Failure = Schemas["PipelineFailure"];
/** By name; a connection with its users is none that could be filed. */
export type Connections = Record<string, Schemas["Connection"] & { used_by: string[] }>;
export type ConnectionTest = Schemas["ConnectionTest"];
export type PlaceState = Schemas["LinkState"];
export type Queue = Schemas["QueueState"];
export type Layout = Schemas["LayoutFile"];
export type UiEvent = Schemas["UiEvent"];
export type PipelinePulse = Schemas["PipelinePulse"];
export type Pulse = Schemas["Pulse"];
export type Change = Schemas["Change"];
export type RecentHistory = Schemas["RecentHistory"];
export type ComponentDoc = Schemas["ComponentDoc"];
export type FieldDoc = Schemas["FieldDoc"];
export type Plan = Schemas["RevertPlan"];

/** A refusal: its one line, and the diagnostics when a document was refused. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    text: string,
    readonly diagnostics: Diagnostic[] = [],
  ) {
    super(text);
  }
}

/** Told of each refusal: who was signed in may not be any more. */
export const refusals = { told: (_: Refusal): void => {} };

export async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await answered(method, path, body === undefined ? body : JSON.stringify(body));
  return answer.status === 204 ? (undefined as T) : await answer.json();
}

export async function answered(
  method: string,
  path: string,
  body?: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  // Relative, so that the page also works where a proxy puts the server below a path.
  const answer = await fetch(`.${path}`, {
    method,
    credentials: "same-origin",
    ...(body === undefined
      ? { headers }
      : { headers: { "Content-Type": "application/json", ...headers }, body }),
  });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({ error: answer.statusText }));
  const refusal = new Refusal(answer.status, said.error, said.diagnostics);
  refusals.told(refusal);
  throw refusal;
}

export const segment = encodeURIComponent;

export const api = {
  me: () => ask<Me>("GET", "/api/auth/me"),
  login: (username: string, password: string) =>
    ask<Me>("POST", "/api/auth/login", { username, password }),
  tokenLogin: (token: string) => ask<Me>("POST", "/api/auth/token", { token }),
  logout: () => ask<void>("POST", "/api/auth/logout"),
  pipelines: () => ask<Pipeline[]>("GET", "/api/pipelines"),
  pipeline: (id: string) => ask<Pipeline>("GET", `/api/pipelines/${segment(id)}`),
  settings: () => ask<Settings>("GET", "/api/settings"),
  buckets: () => ask<Bucket[]>("GET", "/api/state"),
  bucket: (name: string) => ask<Schemas["BucketContents"]>("GET", `/api/state/${segment(name)}`),
  /** All that is known, or the buckets that start after that second. */
  history: (id: string, resolution: History["resolution"], after?: number) =>
    ask<History>(
      "GET",
      `/api/pipelines/${segment(id)}/history?resolution=${resolution}${after === undefined ? "" : `&after=${after}`}`,
    ),
  failures: () => ask<Schemas["LatestFailures"]>("GET", "/api/failures"),
  remove: (id: string) => ask<void>("DELETE", `/api/pipelines/${segment(id)}`),
  /** The last minute of all pipelines, in buckets of five seconds. */
  recent: () => ask<RecentHistory>("GET", "/api/history?resolution=fine&limit=12"),
  /** Where cards stand, and the version that a change of it has to name. */
  layout: async (): Promise<[Layout, string | null]> => {
    const answer = await answered("GET", "/api/layout");
    return [await answer.json(), answer.headers.get("ETag")];
  },
  putLayout: async (layout: Layout, version: string | null): Promise<string | null> => {
    const match: Record<string, string> = version ? { "If-Match": version } : {};
    const answer = await answered("PUT", "/api/layout", JSON.stringify(layout), match);
    return answer.headers.get("ETag");
  },
  /** JSON text both ways, so that the numbers of messages keep their digits. */
  dryRunText: async (request: string) =>
    (await answered("POST", "/api/pipelines/dry-run", request)).text(),
  sampleText: async (request: string) =>
    (await answered("POST", "/api/inputs/sample", request)).text(),
  /** A page of a bucket as JSON text: its values keep their digits. */
  bucketText: async (name: string, prefix: string, after: string) => {
    const asked = new URLSearchParams({ ...(prefix && { prefix }), ...(after && { after }) });
    return (await answered("GET", `/api/state/${segment(name)}?${asked}`)).text();
  },
  connections: () => ask<Connections>("GET", "/api/connections?used_by=true"),
  fileConnection: (connection: unknown) => ask<void>("POST", "/api/connections", connection),
  removeConnection: (name: string) => ask<void>("DELETE", `/api/connections/${segment(name)}`),
  testConnection: (connection: unknown) =>
    ask<ConnectionTest>("POST", "/api/connections/test", connection),
  openapi: () =>
    ask<{ components: { schemas: Record<string, unknown> } }>("GET", "/api/openapi.json"),
};
