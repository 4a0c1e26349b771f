import { authoring } from "../api/authoring";

/** The connections that there are, asked when an editor opens. */
class Connections {
  all = $state.raw<readonly { name: string; type: string }[]>([]);

  async ask(): Promise<void> {
    this.all = await authoring.connections();
  }
}

export const connections = new Connections();
