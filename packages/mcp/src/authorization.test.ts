import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { isMillraceError } from 'millrace';
import { ClientCredentialsProvider, type OAuthClientProvider } from '@modelcontextprotocol/client';
import { assert, asyncProperty, constant, constantFrom, oneof, record } from 'fast-check';
import { firstValueFrom } from 'rxjs';
import { type McpServer, mcpTools } from './index.js';

/** Three origins of this machine: that of the server, one that the program may allow, and one that it never allows. */
const places = ['own', 'login', 'thief'] as const;
type Place = (typeof places)[number];

interface Seen {
  readonly place: Place;
  readonly path: string;
  /** The header `authorization` and the body. */
  readonly content: string;
}

/** What the servers say: the origin of each address that one of them names, or a whole address. */
interface Says {
  readonly challenge?: string;
  readonly status?: 401 | 403;
  readonly authorizationServer?: string;
  readonly issuer?: string;
  readonly token?: string;
  readonly register?: string;
  readonly authorize?: string;
  /** A path that redirects, and to where. */
  readonly redirect?: readonly [path: string, to: string];
}

const servers = new Map<Place, Server>();
const seen: Seen[] = [];
let says: Says = {};

const at = (place: Place): string => {
  const address = servers.get(place)?.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
};

const metadata = (origin: string) => ({
  issuer: says.issuer ?? origin,
  authorization_endpoint: `${says.authorize ?? origin}/authorize`,
  token_endpoint: `${says.token ?? origin}/token`,
  registration_endpoint: `${says.register ?? origin}/register`,
  response_types_supported: ['code'],
  grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
  code_challenge_methods_supported: ['S256'],
});

const answer = (place: Place, path: string, { headers }: IncomingMessage, out: ServerResponse) => {
  const send = (status: number, body: unknown, more: Record<string, string> = {}): void => {
    out.writeHead(status, { 'content-type': 'application/json', ...more });
    out.end(JSON.stringify(body));
  };
  const [from, to] = says.redirect ?? [];
  if (from !== undefined && path.startsWith(from)) {
    send(307, {}, { location: `${to}${path}` });
  } else if (path.startsWith('/.well-known/oauth-protected-resource')) {
    const resource = `${at('own')}/mcp`;
    send(200, { resource, authorization_servers: [says.authorizationServer ?? at('own')] });
  } else if (path.startsWith('/.well-known/')) send(200, metadata(at(place)));
  else if (path === '/token') send(200, { access_token: 'fresh', token_type: 'Bearer' });
  else if (path === '/register') send(201, { client_id: 'new', redirect_uris: ['http://x/cb'] });
  else if (headers.authorization === 'Bearer fresh') send(500, { error: 'authorized' });
  else {
    const metadataUrl = `${says.challenge ?? at('own')}/.well-known/oauth-protected-resource`;
    const error = says.status === 403 ? ' error="insufficient_scope", scope="more",' : '';
    const challenge = `Bearer${error} resource_metadata="${metadataUrl}"`;
    send(says.status ?? 401, {}, { 'www-authenticate': challenge });
  }
};

beforeAll(async () => {
  // The SDK reports each credential without an issuer.
  jest.spyOn(console, 'warn').mockImplementation(() => undefined);
  for (const place of places) {
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += String(chunk)));
      request.on('end', () => {
        const path = request.url ?? '';
        seen.push({ place, path, content: `${request.headers.authorization ?? ''} ${body}` });
        answer(place, path, request, response);
      });
    });
    servers.set(place, server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }
});

afterEach(() => {
  says = {};
  seen.splice(0);
});

afterAll(async () => {
  for (const server of servers.values()) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

interface Stored {
  /** The issuer of the tokens, and of the client. */
  readonly tokens?: string | undefined;
  readonly client?: string | undefined;
}

const opened: string[] = [];

/** A provider in memory, with private fields as classes have them. */
class Provider implements OAuthClientProvider {
  #client: object;
  #tokens: object;
  readonly redirectUrl = 'http://127.0.0.1:9/callback';
  readonly clientMetadata = { client_name: 'test', redirect_uris: [this.redirectUrl] };
  constructor({ tokens, client }: Stored) {
    const stamp = (issuer: string | undefined) => issuer !== undefined && { issuer };
    this.#client = { client_id: 'us', client_secret: 'CLIENT-SECRET', ...stamp(client) };
    this.#tokens = {
      access_token: 'ACCESS',
      refresh_token: 'REFRESH',
      token_type: 'Bearer',
      ...stamp(tokens),
    };
  }
  clientInformation = (): never => this.#client as never;
  saveClientInformation(client: object): void {
    this.#client = client;
  }
  tokens(): never {
    return this.#tokens as never;
  }
  saveTokens(tokens: object): void {
    this.#tokens = tokens;
  }
  redirectToAuthorization(url: URL): void {
    opened.push(url.origin);
  }
  saveCodeVerifier(): void {
    // It is not exchanged here.
  }
  codeVerifier(): string {
    return 'v';
  }
}

const server = (
  authProvider: OAuthClientProvider,
  http: Partial<NonNullable<McpServer['http']>> = {},
): McpServer => ({
  name: 'web',
  http: { url: `${at('own')}/mcp`, authProvider, ...http },
  timeouts: { connectMs: 5_000 },
  reconnect: { attempts: 1 },
});

/** Connects, and returns the code of the failure: no server here has tools. */
const failureOf = async (it: McpServer): Promise<{ readonly code: string; message: string }> => {
  const failure: unknown = await firstValueFrom(mcpTools(it)).catch((cause: unknown) => cause);
  return isMillraceError(failure) ? failure : { code: 'none', message: String(failure) };
};

const requestsTo = (place: Place): readonly string[] =>
  seen.filter((it) => it.place === place).map(({ path, content }) => `${path} ${content}`);

describe('X36: an address that a server names', () => {
  it.each<[where: string, code: string, says: () => Says]>([
    ['in its challenge', 'refused', () => ({ challenge: at('thief') })],
    ['in a challenge for more scopes', 'refused', () => ({ status: 403, challenge: at('thief') })],
    ['as its authorization server', 'refused', () => ({ authorizationServer: at('thief') })],
    ['as its token endpoint', 'refused', () => ({ token: at('thief') })],
    [
      'as its page for the user',
      'refused',
      () => ({ authorize: at('thief'), redirect: ['/token', at('thief')] }),
    ],
    [
      'as a file',
      'refused',
      () => ({ authorize: 'file:///etc', redirect: ['/token', at('thief')] }),
    ],
    ['as another issuer', 'auth', () => ({ issuer: at('thief') })],
    [
      'in a redirect of the protocol',
      'invalidRequest',
      () => ({ redirect: ['/mcp', at('thief')] }),
    ],
    [
      'in a redirect of its metadata',
      'none',
      () => ({ redirect: ['/.well-known/oauth-authorization-server', at('thief')] }),
    ],
    [
      'with a password',
      'refused',
      () => ({ challenge: at('own').replace('://', '://user:password@') }),
    ],
    [
      'by another name of this machine',
      'refused',
      () => ({ token: at('thief').replace('127.0.0.1', 'localhost') }),
    ],
    [
      'in IPv6',
      'refused',
      () => ({ token: at('thief').replace('http://127.0.0.1', 'https://[::ffff:7f00:1]') }),
    ],
    ['as the metadata service of a cloud', 'refused', () => ({ token: 'https://169.254.169.254' })],
    ['in a private network', 'refused', () => ({ authorizationServer: 'https://10.0.0.1' })],
  ])('%s is not asked: %s', async (_where, code, given) => {
    says = given();
    const provider = new Provider({ tokens: at('own'), client: at('own') });
    const failure = await failureOf(server(provider));
    expect(requestsTo('thief')).toEqual([]);
    expect(opened.filter((origin) => origin !== at('own'))).toEqual([]);
    if (code !== 'none') expect(failure.code).toBe(code);
    if (code === 'refused') expect(failure.message).toContain("add it to 'http.origins'");
  });

  it('as its place to register a client is not asked', async () => {
    says = { register: at('thief') };
    const provider = new Provider({});
    provider.clientInformation = () => undefined as never;
    expect((await failureOf(server(provider))).code).toBe('refused');
    expect(requestsTo('thief')).toEqual([]);
  });

  it('is not asked if the provider has kept it', async () => {
    const provider: OAuthClientProvider = Object.assign(new Provider({}), {
      discoveryState: () => ({ authorizationServerUrl: at('thief') }),
    });
    expect((await failureOf(server(provider))).code).toBe('refused');
    expect(requestsTo('thief')).toEqual([]);
  });

  it('is asked if the application allows its origin', async () => {
    says = { authorizationServer: at('login') };
    const provider = new Provider({ tokens: at('login'), client: at('login') });
    await failureOf(server(provider, { origins: [at('login')] }));
    expect(requestsTo('login').join()).toContain('refresh_token=REFRESH');
    expect(requestsTo('own').at(-1)).toContain('Bearer fresh');
  });

  it.each(['login.example.com', 'https://login.example.com/path', 'ftp://login.example.com', 5])(
    'cannot be allowed by %j, which is no origin',
    (origin) => {
      const http = { url: 'https://a.example', origins: [origin as string] };
      expect(() => mcpTools({ name: 'web', http })).toThrow(/'origins' must be a list of origins/);
    },
  );
});

describe('X36: credentials', () => {
  it.each<[what: string, stored: () => Stored, code: string, token: RegExp]>([
    [
      'of its issuer are sent',
      () => ({ tokens: at('own'), client: at('own') }),
      'server',
      /REFRESH/,
    ],
    [
      'of another issuer are not',
      () => ({ tokens: at('login'), client: at('login') }),
      'auth',
      /^$/,
    ],
    ['of no issuer are not', () => ({}), 'config', /^$/],
    ['whose client has no issuer are not', () => ({ tokens: at('own') }), 'config', /^$/],
    ['whose tokens have no issuer are not', () => ({ client: at('own') }), 'auth', /^$/],
  ])('%s', async (_what, stored, code, token) => {
    expect((await failureOf(server(new Provider(stored())))).code).toBe(code);
    const sent = seen.filter(
      ({ path, content }) => path !== '/mcp' && /REFRESH|Basic/.test(content),
    );
    expect(sent.map(({ content }) => content).join()).toMatch(token);
  });

  it.each<[string | undefined, string]>([
    [undefined, 'config'],
    ['https://login.example.com', 'auth'],
  ])('of the SDK with the issuer %s are not sent: %s', async (expectedIssuer, code) => {
    const identity = { clientId: 'us', clientSecret: 'CLIENT-SECRET' };
    const provider = new ClientCredentialsProvider({
      ...identity,
      ...(expectedIssuer !== undefined && { expectedIssuer }),
    } as typeof identity & { expectedIssuer: string });
    const failure = await failureOf(server(provider));
    expect(failure.code).toBe(code);
    expect(seen.filter(({ path }) => path === '/token')).toEqual([]);
  });

  it('of the SDK are sent to their issuer', async () => {
    const provider = new ClientCredentialsProvider({
      clientId: 'us',
      clientSecret: 'CLIENT-SECRET',
      expectedIssuer: at('own'),
    });
    await failureOf(server(provider));
    expect(requestsTo('own').at(-1)).toContain('Bearer fresh');
  });

  const place = constantFrom<Place>('own', 'own', 'own', 'login', 'login', 'thief');
  const elsewhere = oneof(
    { weight: 3, arbitrary: constant(undefined) },
    { weight: 1, arbitrary: place },
  );
  const addresses = record({
    challenge: place,
    authorizationServer: place,
    token: elsewhere,
    register: elsewhere,
    authorize: elsewhere,
    issuer: elsewhere,
  });
  // An authorization server that is named honestly, one place, or none.
  const stamp = oneof(
    { weight: 5, arbitrary: constant<'named'>('named') },
    { weight: 2, arbitrary: place },
    { weight: 1, arbitrary: constant(undefined) },
  );
  const stored = record({ tokens: stamp, client: stamp });

  it('reach the issuer that they were stored with and no other, and the server the access token', async () => {
    let sentToIssuer = 0;
    const none = { token: undefined, register: undefined, authorize: undefined, issuer: undefined };
    const honest = { challenge: 'own', authorizationServer: 'login', ...none } as const;
    await assert(
      asyncProperty(
        addresses,
        stored,
        constantFrom<readonly Place[]>(['login'], ['login'], []),
        async (named, kept, origins) => {
          seen.splice(0);
          opened.splice(0);
          const issuer = named.issuer ?? named.authorizationServer;
          const placeOf = (stored: Place | 'named' | undefined) =>
            stored === 'named' ? issuer : stored;
          const where = (stored: Place | 'named' | undefined) => {
            const place = placeOf(stored);
            return place === undefined ? undefined : at(place);
          };
          says = Object.fromEntries(
            Object.entries(named).flatMap(([key, place]) =>
              place === undefined ? [] : [[key, at(place)]],
            ),
          );
          const provider = new Provider({ tokens: where(kept.tokens), client: where(kept.client) });
          await failureOf(server(provider, { origins: origins.map(at) }));
          const allowed = new Set<Place>(['own', ...origins]);
          expect(seen.filter(({ place }) => !allowed.has(place))).toEqual([]);
          expect(opened.filter((origin) => ![...allowed].map(at).includes(origin))).toEqual([]);
          // The token endpoint is that of the issuer, which says where it is.
          for (const { place, path, content } of seen) {
            if (content.includes('ACCESS')) expect(place).toBe('own');
            if (content.includes('REFRESH')) sentToIssuer += 1;
            if (content.includes('REFRESH'))
              expect([path, placeOf(kept.tokens)]).toEqual(['/token', issuer]);
            if (content.includes('Basic'))
              expect([path, placeOf(kept.client)]).toEqual(['/token', issuer]);
          }
        },
      ),
      { numRuns: 200, examples: [[honest, { tokens: 'named', client: 'named' }, ['login']]] },
    );
    expect(sentToIssuer).toBeGreaterThan(0);
  });
});

describe('X36: a function for the requests', () => {
  it('sends each of them, returns redirects, and decides what can be reached', async () => {
    const urls: string[] = [];
    const failure = await failureOf(
      server(new Provider({ tokens: at('own'), client: at('own') }), {
        fetch: async (url, request) => {
          urls.push(`${request.method} ${new URL(url).pathname} ${request.redirect}`);
          if (url.endsWith('/token')) throw new Error('its address is not public');
          return fetch(url, request);
        },
      }),
    );
    expect(urls).toContain('POST /mcp manual');
    expect(urls).toContain('POST /token manual');
    expect(failure.code).toBe('auth');
    expect(requestsTo('own').filter((it) => it.startsWith('/token'))).toEqual([]);
  });
});
