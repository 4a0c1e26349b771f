import { authoring } from "../api/authoring";
import { api, type ComponentDoc } from "../api/client";
import { Grammar, type Schema } from "../draft/grammar";

let described: Promise<[Grammar, ComponentDoc[]]> | undefined;

/** What configs may say, asked once for the whole page. */
export function description(): Promise<[Grammar, ComponentDoc[]]> {
  described ??= Promise.all([
    api
      .openapi()
      .then(({ components }) => new Grammar(components.schemas as Record<string, Schema>)),
    authoring.docs(),
  ]);
  described.catch(() => (described = undefined));
  return described;
}
