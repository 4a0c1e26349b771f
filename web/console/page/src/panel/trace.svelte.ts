import { api, type Pipeline } from "../api/client";
import type { Answer } from "../dryrun/answer";
import { MOST_MESSAGES } from "../dryrun/given";
import { perform, running } from "../dryrun/request";
import { server } from "../live/server.svelte";
import { isCut } from "../ui/json";
import { JsonText } from "../ui/jsontext";
import { said } from "../ui/said";

/** What each transform of a pipeline makes of a batch: by a dry run, with what its bucket holds now. */
export class Trace {
  state = $state<"idle" | "waiting" | "running">("idle");
  /** The batch, each message as JSON text. */
  given = $state.raw<string[]>([]);
  /** Messages of the batch that are not tried. */
  untried = $state(0);
  answer = $state.raw<Answer>();
  fault = $state("");
  #leave = (): void => {};

  constructor(readonly pipeline: Pipeline) {}

  /** Try the next batch that passes. */
  next(): void {
    this.state = "waiting";
    this.#leave = server.feed.of(this.pipeline.id, ({ stage, payload }) => {
      if (stage !== "input" || "error" in payload || !payload.batch.total) return;
      this.stop();
      const whole = payload.batch.messages.filter((message) => !isCut(message));
      void this.#run(whole.slice(0, MOST_MESSAGES), payload.batch.total);
    });
  }

  /** Try what a sample of an input shows. */
  async sample(input: unknown): Promise<void> {
    this.state = "running";
    try {
      const answer = new Map(
        new JsonText(await api.sampleText(JSON.stringify({ input, timeout_ms: 10_000 }))).entries,
      );
      const messages = answer.get("messages")?.items.map(({ text }) => text) ?? [];
      if (messages.length) return await this.#run(messages, messages.length);
      this.#fail(answer.get("message")?.value() ?? "nothing arrived within ten seconds");
    } catch (cause) {
      this.#refused(cause);
    }
  }

  async #run(messages: string[], total: number): Promise<void> {
    this.state = "running";
    try {
      const given = [{ at: 0, messages }];
      const seconds = Math.max(60, ...(this.pipeline.config.transforms ?? []).map(waits));
      const config = await running(this.pipeline.id);
      this.answer = await perform({ config, given, seconds, fromLive: true });
      [this.given, this.untried, this.fault] = [messages, total - messages.length, ""];
    } catch (cause) {
      this.#refused(cause);
    }
    this.state = "idle";
  }

  #refused(cause: unknown): void {
    this.#fail(said(cause));
  }

  #fail(text: string): void {
    [this.state, this.fault, this.answer] = ["idle", text, undefined];
  }

  /** Wait no longer. */
  stop(): void {
    this.#leave();
    this.#leave = () => {};
    this.state = "idle";
  }
}

const waits = (transform: object): number =>
  "seconds" in transform && typeof transform.seconds === "number" ? transform.seconds : 0;
