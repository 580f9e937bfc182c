// An authorization server (oidc-provider) and an MCP server behind it (the official SDK), each on a port of its own. Beside
// the MCP server is a token endpoint that takes assertions, verified by jose, which the authorization server has no grant
// for.
//
// Prints one line of JSON with their addresses, and ends when its standard input does. The tests steer it at
// /control on the MCP server's port: GET /control/grants says which grants were given or refused, POST
// /control/authorization/down and /up close and open the authorization server, /control/authorization/deaf has the MCP
// server take no token. POST /control/keys/ALGORITHM makes a key pair for assertions, and answers with the private key.
import http from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import express from "express";
import { exportPKCS8, generateKeyPair, jwtVerify } from "jose";
import Provider from "oidc-provider";

const SCOPE = "outbox:read";

function listen(handler, port = 0) {
  return new Promise((resolve) => {
    const server = http.createServer(handler).listen(port, "127.0.0.1", () => resolve(server));
  });
}

/** Both origins must be known before either is built. */
let authorize = (_request, response) => response.end();
let serve = authorize;
let authorization = await listen((request, response) => authorize(request, response));
const mcp = await listen((request, response) => serve(request, response));
const issuer = `http://127.0.0.1:${authorization.address().port}`;
const origin = `http://127.0.0.1:${mcp.address().port}`;
const resource = `${origin}/mcp`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "robot",
      client_secret: "the-secret-of-the-robot",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      token_endpoint_auth_method: "client_secret_basic",
    },
    {
      client_id: "known",
      client_secret: "the-secret-of-the-known-client",
      grant_types: ["authorization_code", "refresh_token"],
      redirect_uris: ["http://127.0.0.1/callback"],
      application_type: "native",
      token_endpoint_auth_method: "client_secret_basic",
    },
  ],
  cookies: { keys: ["only for tests"] },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_context, _client, oneOf) => oneOf ?? resource,
      // A renewal that names no resource is for the one that was granted.
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, indicator) => {
        if (indicator !== resource) throw new Error(`unknown resource ${indicator}`);
        return { scope: SCOPE, audience: resource, accessTokenFormat: "opaque", accessTokenTTL: 3600 };
      },
    },
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  scopes: ["openid", "offline_access", SCOPE],
  ttl: { Grant: 86_400, Interaction: 600, RefreshToken: 86_400, Session: 600 },
});

// The same metadata where RFC 8414 has it.
provider.use(async (context, next) => {
  if (context.path === "/.well-known/oauth-authorization-server") context.path = "/.well-known/openid-configuration";
  await next();
});

const grants = [];
const grantOf = (context) => context.oidc.params?.grant_type ?? "unknown";
provider.on("grant.success", (context) => grants.push({ grant: grantOf(context), error: null }));
provider.on("grant.error", (context, error) => grants.push({ grant: grantOf(context), error: error.error }));
authorize = provider.callback();

let isDeaf = false;
const verifier = {
  async verifyAccessToken(token) {
    if (isDeaf) throw new InvalidTokenError("no token is taken");
    const found = (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
    if (!found || found.isExpired) throw new InvalidTokenError("unknown token");
    const scopes = found.scope?.split(" ") ?? [];
    return { token, clientId: found.clientId, scopes, expiresAt: found.exp, resource: new URL(found.aud) };
  },
};

function outbox() {
  const server = new McpServer({ name: "acme", version: "1.0.0" });
  server.registerResource("notifications", "acme://notifications", {}, (uri) => {
    const text = JSON.stringify({ events: [], cursor: "c0", truncated: false, hasMore: false });
    return { contents: [{ uri: uri.href, mimeType: "application/json", text }] };
  });
  return server;
}

const app = express();
const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
app.get("/.well-known/oauth-protected-resource/mcp", (_request, response) => {
  response.json({ resource, authorization_servers: [issuer], scopes_supported: [SCOPE] });
});
const signedIn = requireBearerAuth({
  verifier,
  requiredScopes: [SCOPE],
  resourceMetadataUrl: metadata,
  expectedResource: resource,
});
app.all("/mcp", signedIn, async (request, response) => {
  const server = outbox();
  response.on("close", () => void server.close());
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  await transport.handleRequest(request, response);
});

const BY_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ASSERTIONS = `${origin}/assertions/token`;
const keys = new Map();
const seen = new Set();

/** The token for an assertion that is good (RFC 7523, section 3); each is taken once. */
async function granted(form) {
  if (form.grant_type !== BY_ASSERTION) throw new Error(`another grant: ${form.grant_type}`);
  const { payload, protectedHeader } = await jwtVerify(form.assertion, ({ kid }) => keys.get(kid), {
    audience: ASSERTIONS,
    issuer: "bell@example.com",
    maxTokenAge: "10m",
    requiredClaims: ["exp", "iat", "jti"],
    subject: "admin@example.com",
    typ: "JWT",
  });
  const { alg, kid } = protectedHeader;
  if (alg !== kid) throw new Error(`the key ${kid} is not for ${alg}`);
  if (payload.exp - payload.iat > 3600) throw new Error("it counts for too long");
  if (payload.scope !== SCOPE || form.scope !== SCOPE) throw new Error("another scope");
  if (seen.has(payload.jti)) throw new Error("it was used before");
  seen.add(payload.jti);
  return `token-by-an-assertion-of-${kid}-${payload.jti}`;
}

app.post("/assertions/token", express.urlencoded({ extended: false }), async (request, response) => {
  try {
    response.json({ access_token: await granted(request.body), token_type: "Bearer", expires_in: 3600 });
    grants.push({ grant: BY_ASSERTION, error: null });
  } catch (error) {
    grants.push({ grant: BY_ASSERTION, error: error.message });
    response.status(400).json({ error: "invalid_grant", error_description: error.message });
  }
});
app.post("/control/keys/:algorithm", async (request, response) => {
  const { algorithm } = request.params;
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  keys.set(algorithm, publicKey);
  response.type("text/plain").send(await exportPKCS8(privateKey));
});
app.get("/control/grants", (_request, response) => response.json(grants));
app.post("/control/authorization/down", (_request, response) => {
  authorization.close(() => response.end());
  authorization.closeAllConnections();
});
app.post("/control/authorization/up", async (_request, response) => {
  authorization = await listen((incoming, answer) => authorize(incoming, answer), Number(new URL(issuer).port));
  response.end();
});
app.post("/control/authorization/deaf", (_request, response) => {
  isDeaf = true;
  response.end();
});
serve = app;

console.log(JSON.stringify({ issuer, mcp: resource, control: `${origin}/control`, assertions: ASSERTIONS }));
process.stdin.on("end", () => process.exit(0)).resume();
