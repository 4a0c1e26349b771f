import type { Failure } from "../api/client";

export type FailureClass = Failure["class"];

/** What would help, by the class of a failure. */
export const HELP: Readonly<Record<FailureClass, string>> = {
  unavailable: "time heals it",
  misconfigured: "somebody has to act",
  invalid: "it is the content",
  unclear: "it may have arrived",
};
export const CLASSES = Object.keys(HELP) as readonly FailureClass[];

/** The same of a class that only the server may know. */
export const helpOf = (name: string): string | undefined =>
  Object.hasOwn(HELP, name) ? HELP[name as FailureClass] : undefined;
