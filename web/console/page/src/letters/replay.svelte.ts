import { letters, type ReplayFigures } from "../api/letters";
import { Refusal } from "../api/client";
import { server } from "../live/server.svelte";
import { said } from "../ui/said";

const EACH_MS = 1000;
const UNDER_WAY = 409;

/** The replay of a pipeline's letters that was begun here: followed until it is over. */
export class Replay {
  figures = $state.raw<ReplayFigures>();
  /** Whether the pipeline has another config than when one of the letters failed. */
  isOtherConfig = $state(false);
  /** Which settings of it are others, as far as that is known. */
  changed = $state.raw<readonly string[]>([]);
  /** Why it could not begin, or nobody can tell how far it is. */
  fault = $state("");
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly pipeline: string) {}

  get isRunning(): boolean {
    return this.figures?.state === "running";
  }

  /** Begin it; the request is JSON text. Whether it has begun. */
  async begin(request: string): Promise<boolean> {
    this.dismiss();
    try {
      const begun = await letters.replay(this.pipeline, request);
      const { replay, selected } = begun;
      this.isOtherConfig = begun.config_changed;
      this.changed = begun.changed ?? [];
      this.figures = { replay, selected, done: 0, failed: 0, state: "running" };
    } catch (cause) {
      this.fault = said(cause);
      // Somebody else's may be under way: then it is that one that shows.
      if (cause instanceof Refusal && cause.status === UNDER_WAY) await this.#look();
      return false;
    }
    await this.#look();
    return true;
  }

  async stop(): Promise<void> {
    await letters.stop(this.pipeline).catch(() => {}); // it may be over by itself
    await this.#look();
  }

  /** Show nothing of it any more. */
  dismiss(): void {
    clearTimeout(this.#timer);
    this.figures = undefined;
    this.isOtherConfig = false;
    this.changed = [];
    this.fault = "";
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    const before = this.figures;
    try {
      this.figures = (await letters.figures(this.pipeline)) ?? undefined;
    } catch (cause) {
      if (before) this.fault = said(cause);
    }
    if (this.isRunning) this.#timer = setTimeout(() => void this.#look(), EACH_MS);
    const { done, failed, state } = this.figures ?? {};
    if (done !== before?.done || failed !== before?.failed || state !== before?.state)
      server.letters.changed();
    // What has gone through may be there for a moment more.
    if (before?.state === "running" && state !== "running")
      setTimeout(() => server.letters.changed(), EACH_MS);
  }
}

const replays = new Map<string, Replay>();

/** That of a pipeline: it is the same when the screen is opened again. */
export function replayOf(pipeline: string): Replay {
  const known = replays.get(pipeline) ?? new Replay(pipeline);
  replays.set(pipeline, known);
  return known;
}
