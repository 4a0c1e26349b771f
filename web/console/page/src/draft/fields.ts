/** A field of messages: where it is, what it holds, and one value of it. */
export interface Field {
  path: string;
  type: string;
  example: string;
}

/** A number as it was written: every digit of it. */
class Figure {
  constructor(readonly digits: string) {}
}

type Revive = (key: string, value: unknown, context?: { source?: string }) => unknown;
const figures: Revive = (_, value, context) =>
  typeof value === "number" ? new Figure(context?.source ?? String(value)) : value;

/** Parse JSON without losing a digit; `written` gives it back. */
export const parsed = (json: string): unknown =>
  JSON.parse(json, figures as Parameters<typeof JSON.parse>[1]);

export function written(value: unknown): string {
  if (value instanceof Figure) return value.digits;
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([key, each]) => `${JSON.stringify(key)}:${written(each)}`)
      .join(",")}}`;
  return JSON.stringify(value ?? null);
}

const MOST = 300;
const DEEPEST = 5;

/** The fields of some messages, as a config names them: `order.id`. */
export function fieldsOf(messages: readonly unknown[]): Field[] {
  const found = new Map<string, { types: Set<string>; example: string }>();
  const look = (value: unknown, path: string, depth: number): void => {
    if (path) {
      const field = found.get(path) ?? { types: new Set(), example: written(value) };
      field.types.add(typeName(value));
      if (found.size < MOST) found.set(path, field);
    }
    if (typeName(value) !== "object" || depth === DEEPEST) return;
    for (const [key, each] of Object.entries(value as object))
      look(each, path ? `${path}.${key}` : key, depth + 1);
  };
  for (const message of messages) look(message, "", 0);
  return [...found].map(([path, { types, example }]) => ({
    path,
    type: [...types].join(" or "),
    example: example.length > 60 ? `${example.slice(0, 59)}…` : example,
  }));
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (value instanceof Figure) return "number";
  return Array.isArray(value) ? "list" : typeof value === "string" ? "text" : typeof value;
}
