import type { Grammar, Member, Schema } from "./grammar";
import { member, type Path } from "./yaml";

/** What the cursor is in: an object, what may stand in it, and the key that the cursor is at. */
export interface Here {
  path: Path;
  schema: Schema;
  members: Member[];
  key: string | undefined;
}

/** The object that a path is in, and the key of it that the path goes through. */
export function hereAt(grammar: Grammar, value: unknown, path: Path): Here | undefined {
  for (let length = path.length; length >= 0; length--) {
    const around = path.slice(0, length);
    const schema = grammar.at(around, value);
    const members = grammar.members(schema);
    if (schema && members.length && !Array.isArray(member(value, around))) {
      const step = path[length];
      return { path: around, schema, members, key: typeof step === "string" ? step : undefined };
    }
  }
  return undefined;
}
