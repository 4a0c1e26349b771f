import { route } from "../ui/route.svelte";

/** What another screen wants to have tried. */
export interface Trial {
  /** The config that is tried, as JSON, if it is another than the one that runs: a draft. */
  config?: string;
  /** Messages that go in, as JSON text; `at` in seconds of virtual time. */
  given?: { at: number; messages: string[] }[];
  /** The transform to look at. */
  stage?: number;
  /** Where one goes back to; else to the pipeline. */
  back?: string[];
}

/** In memory alone: messages go to no storage. */
const trials = new Map<string, Trial>();

/** Open the dry run of a pipeline with something that it does not know itself. */
export function dryRun(id: string, trial: Trial = {}): void {
  trials.set(id, trial);
  route.go("dryrun", id);
}

/** What is to be tried of a pipeline; the same again when the screen is opened again. */
export const trialOf = (id: string): Trial => trials.get(id) ?? {};

/** Keep what is being tried, so that it is there when one comes back. */
export const keep = (id: string, trial: Trial): void => void trials.set(id, trial);
