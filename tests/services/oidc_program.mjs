// An OpenID provider as a program: node oidc_program.mjs '{"port": 4000, "modules": ..., "audience": ..., "users": ...}'
// Its keys are made when it starts, an RSA and an EC one. What a token is asked for says which of them signs it:
// `resource=urn:signed:RS256` or `urn:signed:ES256`.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const options = JSON.parse(process.argv[2]);
const entry = join(options.modules, "oidc-provider", "lib", "index.js");
const { Provider } = await import(pathToFileURL(entry).href);

const { users, clients } = options;
const ALGORITHMS = { RS256: ["rsa", { modulusLength: 2048 }], ES256: ["ec", { namedCurve: "P-256" }] };

function made(alg) {
  const { privateKey } = generateKeyPairSync(...ALGORITHMS[alg]);
  return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), alg, use: "sig" };
}

function signedBy(resource) {
  return {
    audience: options.audience,
    scope: "pipelines",
    accessTokenFormat: "jwt",
    accessTokenTTL: 300,
    jwt: { sign: { alg: resource.split(":").at(-1) } },
  };
}

const provider = new Provider(`http://127.0.0.1:${options.port}`, {
  jwks: { keys: Object.keys(ALGORITHMS).map(made) },
  clients: Object.entries(clients).map(([id, { secret }]) => ({
    client_id: id,
    client_secret: secret,
    grant_types: ["client_credentials", "password"],
    redirect_uris: [],
    response_types: [],
  })),
  findAccount: (_, id) => users[id] && { accountId: id, claims: () => ({ sub: id }) },
  extraTokenClaims: (_, token) => (users[token.accountId] ?? clients[token.clientId]).claims,
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: { enabled: true, getResourceServerInfo: (_, resource) => signedBy(resource) },
  },
});

async function byPassword(ctx) {
  const { username, password, resource } = ctx.oidc.params;
  if (users[username]?.password !== password) {
    ctx.status = 400;
    ctx.body = { error: "invalid_grant" };
    return;
  }
  const { client } = ctx.oidc;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: username });
  const token = new provider.AccessToken({
    client, accountId: username, grantId: await grant.save(), gty: "password", scope: "pipelines",
  });
  token.resourceServer = new provider.ResourceServer(resource, signedBy(resource));
  ctx.oidc.entity("AccessToken", token);
  ctx.body = { access_token: await token.save(), token_type: "Bearer", expires_in: token.expiration };
}

provider.registerGrantType("password", byPassword, ["username", "password", "resource"]);
provider.on("server_error", (_, cause) => console.error(cause));
provider.listen(options.port, "127.0.0.1", () => console.log("ready"));
