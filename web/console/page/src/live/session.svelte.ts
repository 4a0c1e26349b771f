import { api, refusals, Refusal, type Me } from "../api/client";
import { said } from "../ui/said";

const TOKEN = "auth_token";

/** Who uses the page, and what they may do. The page hides what the server would refuse. */
class Session {
  me = $state.raw<Me>();
  /** Why a token of the address was not taken, or nobody could be asked. */
  trouble = $state("");

  constructor() {
    refusals.told = ({ status }) => {
      if (status === 401 && this.me && !this.isAsked) void this.ask();
    };
  }

  /** Whether somebody has to sign in before anything can be seen. */
  get isAsked(): boolean {
    return !!this.me?.authentication_required && this.me.username === null;
  }

  /** Whether what changes something is offered. */
  get mayChange(): boolean {
    return !this.me?.authentication_required || this.me.role === "admin";
  }

  /** Find out who is there; a token of the address is exchanged for a session, and shows no more. */
  async begin(): Promise<void> {
    const address = new URL(location.href);
    const token = address.searchParams.get(TOKEN);
    address.searchParams.delete(TOKEN);
    if (token !== null) history.replaceState(history.state, "", address);
    try {
      if (token) this.me = await api.tokenLogin(token);
      else await this.ask();
    } catch (cause) {
      this.trouble = said(cause);
      if (token) await this.ask().catch(() => {});
    }
  }

  async ask(): Promise<void> {
    this.me = await api.me();
  }

  async signIn(username: string, password: string): Promise<void> {
    this.me = await api.login(username, password);
    this.trouble = "";
  }

  async signOut(): Promise<void> {
    await api.logout();
    await this.ask();
  }
}

export const session = new Session();
