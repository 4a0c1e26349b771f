/** A condition in words: one by its keys, or one of the older form of a filter, which has no type. */
export interface Condition {
  type?: string;
  field?: string;
  operator?: string;
  value?: unknown;
  /** A field that is compared with, in place of a value. */
  other?: string;
  values?: readonly unknown[];
  regex?: string;
  conditions?: readonly Condition[];
}

const SIGNS: Record<string, string> = {
  greater_than: ">",
  less_than: "<",
  equal_to: "=",
  not_equal_to: "≠",
  at_least: "≥",
  at_most: "≤",
};

/** What all of these conditions ask for: `temp > 80 and machine exists`. */
export const asks = (all: readonly Condition[]): string => all.map(one).join(" and ");

function one(condition: Condition): string {
  const { type, field = "", conditions = [] } = condition;
  switch (type) {
    case "not":
      return `not ${around(conditions, " and ")}`;
    case "any":
      return around(conditions, " or ");
    case "all":
      return around(conditions, " and ");
    case "exists":
      return `${field} exists`;
    case "boolean":
      return condition.value === false ? `${field} is false` : field;
    case "one_of":
      return `${field} in ${(condition.values ?? []).map(written).join(", ")}`;
    case "matches":
      return `${field} matches ${condition.regex}`;
    default:
      return [type === "length" ? `length of ${field}` : field, compared(condition)].join(" ");
  }
}

function compared({ operator = "", value, other }: Condition): string {
  const sign = SIGNS[operator] ?? operator.replaceAll("_", " ");
  return `${sign} ${other ?? written(value)}`;
}

/** Some conditions as one: in brackets, if they are several. */
function around(conditions: readonly Condition[], between: string): string {
  const words = conditions.map(one).join(between);
  return conditions.length > 1 ? `(${words})` : words;
}

const written = (value: unknown): string => JSON.stringify(value);
