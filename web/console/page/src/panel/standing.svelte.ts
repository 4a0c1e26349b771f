import { api, type PlaceState, type Queue } from "../api/client";

const EACH_SECONDS = 2;

/** How the inputs, the outputs and the queues of one pipeline are, while somebody looks at them. */
export class Standing {
  inputs = $state.raw<readonly PlaceState[]>([]);
  outputs = $state.raw<readonly PlaceState[]>([]);
  queues = $state.raw<readonly Queue[]>([]);
  #timer: ReturnType<typeof setInterval>;

  constructor(readonly id: string) {
    void this.#load();
    this.#timer = setInterval(() => document.hidden || void this.#load(), EACH_SECONDS * 1000);
  }

  async #load(): Promise<void> {
    const told = await api.pipeline(this.id).catch(() => undefined);
    if (!told) return; // the server is gone, or the pipeline is: others tell
    this.inputs = told.inputs;
    this.outputs = told.outputs;
    this.queues = told.queues;
  }

  end(): void {
    clearInterval(this.#timer);
  }
}
