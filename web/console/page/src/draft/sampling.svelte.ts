import { api } from "../api/client";
import type { Feed } from "../live/feed";
import { toJson } from "./exact";
import { fieldsOf, parsed, written, type Field } from "./fields";
import { kindOf } from "./naming";
import { member, nodeAt, type Reading } from "./yaml";

/** Long enough for every buffer to let go of what it holds. */
const A_YEAR = 366 * 24 * 3600;

interface Sampled {
  outcome: "sampled" | "failed";
  messages?: unknown[];
  message?: string;
}
interface Ran {
  message?: string;
  stages: { kind: string; batches: unknown[][]; on_flush: unknown[][] }[];
}

/** Messages of an input, and what of them reaches each stage of the draft. */
export class Sampling {
  /** What has been read, or why nothing could be. */
  state = $state<"none" | "asked" | "there">("none");
  said = $state("");
  /** Of which input. */
  index = $state(0);
  /** Fields that reach each transform, and behind the last one the outputs. */
  stages = $state.raw<readonly (readonly Field[])[]>([]);
  #messages: readonly unknown[] = [];

  constructor(readonly feed: Feed) {}

  /** Read some messages: of the input if it can be sampled, else of those that pass. */
  async take(reading: Reading, index: number, id: string | undefined): Promise<void> {
    this.state = "asked";
    this.index = index;
    this.said = "";
    try {
      const input = nodeAt(reading, ["inputs", index]);
      const isHttp = kindOf(member(reading.value, ["inputs", index])) === "http";
      this.#messages = isHttp
        ? await this.#passing(id)
        : await this.#sampled(toJson(reading.document, input));
      if (!this.#messages.length) this.said ||= "No message came in five seconds.";
      await this.through(reading);
    } catch (cause) {
      this.said = cause instanceof Error ? cause.message : String(cause);
    }
    this.state = this.#messages.length ? "there" : "none";
  }

  /** Have them go through the draft as it is; a stage that would call a server is where it ends. */
  async through(reading: Reading): Promise<void> {
    if (!this.#messages.length || reading.value === undefined) return;
    const transforms = member(reading.value, ["transforms"]);
    const all = Array.isArray(transforms) ? transforms : [];
    const calls = all.findIndex((each) => kindOf(each) === "http");
    const chain = all.slice(0, calls < 0 ? all.length : calls);
    let said = "";
    const stages = [fieldsOf(this.#messages)];
    if (chain.length) {
      const texts = chain.map((_, at) =>
        toJson(reading.document, nodeAt(reading, ["transforms", at])),
      );
      const state = nodeAt(reading, ["state"]);
      const request = [
        `"messages":${written(this.#messages)}`,
        `"transforms":[${texts.join(",")}]`,
        `"advance_seconds":${A_YEAR}`,
        ...(state ? [`"state":${toJson(reading.document, state)}`] : []),
      ];
      const run = parsed(await api.dryRunText(`{${request.join(",")}}`)) as Ran;
      for (const { kind, batches, on_flush } of run.stages) {
        const found = fieldsOf([...batches, ...on_flush].flat());
        if (!found.length)
          said ||= `Nothing of the sample got through '${kind}': fields are those before it.`;
        stages.push(found.length ? found : stages.at(-1)!);
      }
      if (run.message) said = run.message;
    }
    if (calls >= 0) said ||= "What an http transform answers is not asked for here.";
    this.said = said;
    this.stages = stages;
  }

  async #sampled(input: string): Promise<readonly unknown[]> {
    const request = `{"input":${input},"max_messages":10,"timeout_ms":5000}`;
    const answer = parsed(await api.sampleText(request)) as Sampled;
    if (answer.outcome === "failed") throw new Error(answer.message);
    return answer.messages ?? [];
  }

  /** What is posted within five seconds: nobody else can read an http input. */
  #passing(id: string | undefined): Promise<readonly unknown[]> {
    if (id === undefined) throw new Error("An http input has messages when its pipeline runs.");
    const found: unknown[] = [];
    return new Promise((resolve) => {
      const end = (): void => {
        leave();
        clearTimeout(timer);
        resolve(found);
      };
      const timer = setTimeout(end, 5000);
      const leave = this.feed.of(id, ({ stage, payload }) => {
        if (stage !== "input" || "error" in payload) return;
        found.push(...payload.batch.messages.filter(isWhole).map(parsed));
        if (found.length) end();
      });
    });
  }
}

/** Whether the server sent all of a message: of a long one it sends the beginning. */
function isWhole(message: string): boolean {
  try {
    JSON.parse(message);
    return true;
  } catch {
    return false;
  }
}
