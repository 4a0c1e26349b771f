import {
  answered,
  ask,
  segment,
  type ComponentDoc,
  type Diagnostic,
  type Pipeline,
  type Plan,
} from "./client";

/** The config of a pipeline as the server tells it, and the mark of this version of it. */
export interface Version {
  json: string;
  etag: string;
}

/** Which of the two configs: what runs, or what the config file says. */
export type Which = "running" | "file";

/** What writing and exchanging configs asks of the server. Configs are JSON texts: numbers keep their digits. */
export const authoring = {
  /** What the server has to say of a text; it opens nothing and changes nothing. */
  check: (text: string, id: string | undefined) =>
    ask<{ diagnostics: Diagnostic[] }>("POST", "/api/config/check", {
      text,
      format: "yaml",
      document: "pipeline",
      ...(id === undefined ? {} : { id }),
    }),
  async version(id: string): Promise<Version> {
    const answer = await answered("GET", `/api/pipelines/${segment(id)}`);
    return { json: await answer.text(), etag: answer.headers.get("ETag") ?? "" };
  },
  /** What the exchange of a running pipeline would cost. */
  plan: async (id: string, config: string): Promise<Plan> =>
    (await answered("POST", `/api/pipelines/${segment(id)}/plan`, config)).json(),
  create: async (config: string): Promise<Pipeline> =>
    (await answered("POST", "/api/pipelines", config)).json(),
  replace: async (id: string, config: string, etag: string): Promise<Pipeline> =>
    (await answered("PUT", `/api/pipelines/${segment(id)}`, config, { "If-Match": etag })).json(),
  async connections(): Promise<{ name: string; type: string }[]> {
    const filed = await ask<Record<string, { type: string }>>("GET", "/api/connections");
    return Object.entries(filed).map(([name, { type }]) => ({ name, type }));
  },
  docs: () => ask<ComponentDoc[]>("GET", "/api/docs"),
  /** In the format of the config file, credentials left out. */
  configText: async (of: Which, format?: "json" | "yaml") =>
    (await answered("GET", `/api/config/text?of=${of}${format ? `&format=${format}` : ""}`)).text(),
  revertPlan: () => ask<Plan>("GET", "/api/config/plan"),
  save: (name: string, overwrite: boolean) =>
    ask<{ path: string }>("POST", "/api/config/save", { name, overwrite }),
  revert: () => ask<void>("POST", "/api/config/revert"),
};
