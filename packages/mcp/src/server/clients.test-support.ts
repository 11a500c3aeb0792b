import { PassThrough } from 'node:stream';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { firstValueFrom, type Observable, ReplaySubject, type Subscription } from 'rxjs';
import type { Listening, Served, ServeMcpOptions, ServingOptions } from './index.js';
import { serveMcp } from './index.js';

/** How a client reaches the server, and the version of the protocol. */
export const ways = ['stdio 2025', 'stdio 2026', 'http 2025', 'http 2026'] as const;
export type Way = (typeof ways)[number];

export interface Connected {
  readonly client: Client;
  readonly serving: Subscription;
  /** The URL over HTTP. */
  readonly url: string;
  /** Whether the server has completed, or its error. */
  readonly end$: Observable<unknown>;
}

type ClientOptions = ConstructorParameters<typeof Client>[1];
type Form = (message: string, schema: unknown) => 'accept' | 'decline' | 'cancel' | 'reject';

const open: (() => Promise<void>)[] = [];

/** Ends what the tests of a file have opened. */
export const closeAll = async (): Promise<void> => {
  for (const close of open.splice(0).reverse()) await close();
};

/** Serves until the end of the test. */
export const serving = async (
  served: Served,
  options: ServeMcpOptions,
): Promise<{ readonly listening: Listening } & Pick<Connected, 'serving' | 'end$'>> => {
  const listening$ = new ReplaySubject<Listening>(1);
  const end$ = new ReplaySubject<unknown>(1);
  const subscription = serveMcp(served, options).subscribe({
    next: (it) => listening$.next(it),
    error: (error: unknown) => {
      end$.next(error);
      listening$.error(error);
    },
    complete: () => end$.next('complete'),
  });
  open.push(() => Promise.resolve(subscription.unsubscribe()));
  return { listening: await firstValueFrom(listening$), serving: subscription, end$ };
};

export const overHttp = async (
  served: Served,
  options: ServingOptions & Partial<NonNullable<ServeMcpOptions['http']>> = {},
): Promise<string> => {
  const { port = 0, allowedHosts, allowedOrigins, authorize, ...rest } = options;
  const access = { allowedHosts, allowedOrigins, authorize };
  const http = Object.fromEntries(Object.entries(access).filter(([, value]) => value));
  const { listening } = await serving(served, { ...rest, http: { port, ...http } });
  return listening.transport === 'http' ? listening.url : '';
};

/** A client of the official SDK. `form` answers questions to the user. */
export const clientOf = (way: Way, form?: Form, options: ClientOptions = {}): Client => {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      ...options,
      capabilities: form ? { elicitation: { form: {} } } : (options.capabilities ?? {}),
      versionNegotiation: { mode: way.endsWith('2025') ? 'legacy' : { pin: '2026-07-28' } },
    },
  );
  if (form) {
    client.setRequestHandler('elicitation/create', ({ params }) => {
      const answer = form(params.message, 'requestedSchema' in params && params.requestedSchema);
      return answer === 'accept' || answer === 'reject'
        ? { action: 'accept', content: { approve: answer === 'accept' } }
        : { action: answer };
    });
  }
  return client;
};

/** A client that is connected to a server of its own. */
export const connected = async (
  way: Way,
  served: Served,
  options: ServingOptions & {
    readonly form?: Form;
    readonly client?: ClientOptions;
    /** Adds handlers before the client connects. */
    readonly prepare?: (client: Client) => void;
  } = {},
): Promise<Connected> => {
  const { form, client: clientOptions, prepare, ...rest } = options;
  const client = clientOf(way, form, clientOptions);
  prepare?.(client);
  if (way.startsWith('stdio')) {
    const streams = { input: new PassThrough(), output: new PassThrough() };
    const it = await serving(served, { ...rest, stdio: streams });
    await client.connect(new StdioServerTransport(streams.output, streams.input));
    open.push(() => client.close());
    return { client, url: '', ...it };
  }
  const it = await serving(served, { ...rest, http: { port: 0 } });
  const url = it.listening.transport === 'http' ? it.listening.url : '';
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  open.push(() => client.close());
  return { client, url, ...it };
};

/** The text of a result. */
export const textIn = (result: object): string => {
  const content: unknown = 'content' in result ? result.content : [];
  return Array.isArray(content)
    ? content.map((block: { text?: string; type: string }) => block.text ?? block.type).join('\n')
    : '';
};

/** A request of version 2026-07-28, which has its version and its client with it. */
export interface ModernMessage {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export const modernMessage = (
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  capabilities: object = {},
): ModernMessage => {
  const name = params['name'] ?? params['uri'];
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  return {
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
    },
  };
};

/** Posts a request, and reads the whole answer. */
export const posted = async (
  url: string,
  { body, headers }: ModernMessage,
  more: Readonly<Record<string, string>> | '' | undefined = {},
): Promise<{ readonly status: number; readonly body: string }> => {
  const response = await fetch(url, { method: 'POST', body, headers: { ...headers, ...more } });
  return { status: response.status, body: await response.text() };
};
