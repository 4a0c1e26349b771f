import { answered, ask, segment } from "./client";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type LetterSignature = Schemas["DeadLetterSignature"];
/** A dead letter without what is in it. */
export type LetterEntry = Schemas["DeadLetterEntry"];
export type LetterPage = Schemas["DeadLetterPage"];
export type BegunReplay = Schemas["BegunReplay"];
export type ReplayFigures = Schemas["ReplayFigures"];
/** Letters were put down: told live, at most once a second of what failed alike. */
export type PutDown = Schemas["DeadLettersEvent"];

/** Which letters of a pipeline are meant: what failed alike. */
export interface Alike {
  stage: string;
  message: string;
}

/** Letters of a page. */
const LIMIT = 50;

const of = (id: string, ...rest: (string | number)[]): string =>
  `/api/pipelines/${[id, "dead-letters", ...rest].map(segment).join("/")}`;

/** What is asked of the server about dead letters. */
export const letters = {
  signatures: () => ask<LetterSignature[]>("GET", "/api/dead-letters"),
  /** The newest first; those before a letter, if one is named. */
  page: (id: string, alike: Alike, before?: number) => {
    const asked = new URLSearchParams({ ...alike, limit: `${LIMIT}` });
    if (before !== undefined) asked.set("before", `${before}`);
    return ask<LetterPage>("GET", `${of(id)}?${asked}`);
  },
  /** The whole of a letter as JSON text: its messages keep their digits. */
  text: async (id: string, letter: number) => (await answered("GET", of(id, letter))).text(),
  /** `request` is JSON text, as messages in it are. */
  replay: async (id: string, request: string): Promise<BegunReplay> =>
    (await answered("POST", of(id, "replay"), request)).json(),
  /** What would become of a letter, as JSON text; so is `request`. */
  tried: async (id: string, request: string): Promise<string> =>
    (await answered("POST", of(id, "replay"), request)).text(),
  /** Null: there was none. */
  figures: (id: string) => ask<ReplayFigures | null>("GET", of(id, "replay")),
  stop: (id: string) => ask<void>("DELETE", of(id, "replay")),
  remove: (id: string, which: readonly number[] | Alike) => {
    const asked = new URLSearchParams("stage" in which ? { ...which } : { ids: which.join(",") });
    return ask<{ deleted: number }>("DELETE", `${of(id)}?${asked}`);
  },
};
