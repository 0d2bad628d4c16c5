// A certified provider (npm's `oidc-provider`) for the soak of logins. Reads its settings from CODEHUB_TEST_PROVIDER,
// says its port on standard output, and rotates its keys when a line comes in: a new provider behind the same port.
import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import { createInterface } from "node:readline";
import { Provider } from "oidc-provider";

const { clients, people } = JSON.parse(process.env.CODEHUB_TEST_PROVIDER);
let provider;
let rotations = 0;

function key() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  rotations += 1;
  return { ...privateKey.export({ format: "jwk" }), kid: `key-${rotations}`, use: "sig", alg: "RS256" };
}

function make(issuer) {
  const made = new Provider(issuer, {
    clients,
    jwks: { keys: [key()] },
    cookies: { keys: ["a-key-for-its-cookies"] },
    claims: {
      openid: ["sub"],
      profile: ["name", "preferred_username"],
      email: ["email", "email_verified"],
      groups: ["groups"],
    },
    scopes: ["openid", "profile", "email", "groups"],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    async findAccount(_ctx, id) {
      return people[id] && { accountId: id, claims: async () => ({ sub: id, ...people[id] }) };
    },
  });
  return made.callback();
}

const server = createServer((request, response) => provider(request, response));
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  provider = make(issuer);
  console.log(JSON.stringify({ issuer }));
  createInterface({ input: process.stdin }).on("line", () => {
    provider = make(issuer);
    console.log(JSON.stringify({ rotated: rotations }));
  });
});
