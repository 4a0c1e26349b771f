import { Refusal } from "../api/client";

/** What somebody is told of a request that went wrong. */
export const said = (cause: unknown): string =>
  cause instanceof Refusal ? cause.message : "The server does not answer.";
