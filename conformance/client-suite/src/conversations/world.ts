import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createAgent,
  type Message,
  type ModelRequest,
  requireApproval,
  suspend,
  textOf,
  tool,
} from 'millrace';
import { isRecord } from 'millrace/values';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { agUi } from '@millrace/server/ag-ui';
import { approvalQueue } from '@millrace/server/approvals';
import { serve, type ServeOptions } from '@millrace/server/node';
import { openAi } from '@millrace/server/openai';
import { openFiles } from '@millrace/store';
import {
  BehaviorSubject,
  concat,
  filter,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  of,
  type Subscription,
  take,
  timeout,
} from 'rxjs';

/** Where the server keeps conversations: in the process, or in files, which outlast it. */
export type Keeping = 'process' | 'files';

/** A request that a client sent, and its response. */
interface Exchange {
  readonly url: string;
  readonly init: RequestInit;
  status: number;
  /** Of a response that is no stream. */
  json: unknown;
}

/** A text on the screen, or in a request to the model. */
export interface Line {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

/** A server with one agent that answers everything, for all tabs of a scene. Its clients may lose it, and it may restart. */
export interface World {
  readonly url: () => string;
  /** A `fetch` that keeps what was sent last. */
  readonly fetch: typeof fetch;
  /** What the last `POST` of a client was answered with. */
  readonly last: () => Exchange;
  /** Sends the last request of a client again, or the one with this number, as a proxy does. */
  readonly repeat: (number?: number) => Promise<{ readonly status: number; readonly body: string }>;
  /** Sends each request of a client twice, at the same time; the client reads the second response. */
  readonly sendTwice: (isTwice: boolean) => void;
  /** The requests to the model, oldest first. The answer to each one is `A` and its number. */
  readonly requests: readonly ModelRequest[];
  /** Resolves once this many answers are being written at the same time. */
  readonly writing: (count: number) => Promise<void>;
  /** Stops what runs in the conversation. */
  readonly stop: () => Promise<void>;
  /** Lets the held answers end. */
  readonly release: () => void;
  /** Ends the process of the server, as far as it knows, and starts another one. */
  readonly restart: (options?: ServeOptions) => Promise<void>;
  readonly paid: readonly unknown[];
  readonly close: () => Promise<void>;
}

export const longestMs = 5_000;

/** The answer to the request with this number. */
export const answerTo = (request: number): string => `A${request}`;

/** The number of the request that a text answers. */
export const requestOf = (line: Line): number | undefined => {
  const [, number] = line.role === 'assistant' ? (/^A(\d+)$/u.exec(line.text) ?? []) : [];
  return number === undefined ? undefined : Number(number);
};

/** The texts of messages, without those that only call tools or have their results. */
export const linesOf = (messages: readonly Message[]): readonly Line[] =>
  messages.flatMap((message): readonly Line[] => {
    const { role } = message;
    const said = textOf(message);
    return role === 'tool' || said === '' ? [] : [{ role, text: said }];
  });

/** Questions with these words are answered in another way. */
export const words = { pick: 'pick', pay: 'pay', slowly: 'slowly' };

export const createWorld = async (
  keeping: Keeping,
  aiSdk: 6 | 7,
  given: ServeOptions = {},
): Promise<World> => {
  const folder = keeping === 'files' ? await mkdtemp(join(tmpdir(), 'clients-')) : undefined;
  const paid: unknown[] = [];
  const open$ = new BehaviorSubject(0);
  const isHeld$ = new BehaviorSubject(true);
  const held$ = (number: number) => {
    open$.next(open$.value + 1);
    const released$ = isHeld$.pipe(
      filter((isHeld) => !isHeld),
      take(1),
      map(() => open$.next(open$.value - 1)),
      ignoreElements(),
    );
    return concat(of(text(answerTo(number))), released$, of(finish()));
  };
  const model = scriptedModel(
    ...Array.from({ length: 200 }, (_, number) => ({ messages }: ModelRequest) => {
      const last = messages.at(-1);
      const asked = last?.role === 'user' ? textOf(last) : '';
      if (asked.startsWith(words.pick)) return [toolCall('pick', {}, `k${number}`), finish()];
      if (asked.startsWith(words.pay)) return [toolCall('pay', {}, `p${number}`), finish()];
      if (asked.startsWith(words.slowly)) return held$(number);
      return [text(answerTo(number))];
    }),
  );
  const pays = tool({
    name: 'pay',
    description: 'Pays a bill.',
    run: (input) => {
      paid.push(input);
      return 'Paid.';
    },
  });
  const pick = tool({ name: 'pick', description: 'Lets the user pick.', run: () => suspend() });
  let port = 0;
  let running: Subscription | undefined;
  let closeStore: (() => Promise<void>) | undefined;
  const start = async (options: ServeOptions): Promise<void> => {
    const approvals = approvalQueue({ key: new Uint8Array(32) });
    const store = folder === undefined ? undefined : openFiles(folder);
    const tools = [pick, requireApproval(pays, approvals.approve)];
    const served$ = serve(createAgent({ name: 'helper', model, tools }), {
      port,
      signals: [],
      closeMs: 0,
      aiSdk,
      approvals,
      protocols: [agUi(), openAi()],
      ...(store && { store }),
      ...given,
      ...options,
    });
    await new Promise<void>((resolve, reject) => {
      running = served$.subscribe({
        next: (served) => {
          ({ port } = served);
          resolve();
        },
        error: reject,
      });
    });
    closeStore = store && (() => lastValueFrom(store.close$(), { defaultValue: undefined }));
  };
  const stop = async (): Promise<void> => {
    running?.unsubscribe();
    await closeStore?.();
  };
  const exchanges: Exchange[] = [];
  let isTwice = false;
  const sentAt = (number: number): Exchange => {
    const exchange = exchanges.at(number);
    if (exchange === undefined) throw new Error('No client has sent a request.');
    return exchange;
  };
  const sent = async (url: string, init: RequestInit): Promise<Response> => {
    const own: Exchange = { url, init, status: 0, json: undefined };
    exchanges.push(own);
    const twin = isTwice ? fetch(url, init).then((response) => response.text()) : undefined;
    const response = await fetch(url, init);
    own.status = response.status;
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    if (isJson) own.json = await response.clone().json();
    twin?.catch(() => undefined);
    return response;
  };
  await start({});
  return {
    url: () => `http://127.0.0.1:${port}`,
    fetch: (input, init = {}) => {
      const url = input instanceof Request ? input.url : String(input);
      return init.method === 'POST' ? sent(url, init) : fetch(input, init);
    },
    last: () => sentAt(-1),
    repeat: async (number = -1) => {
      const { url, init } = sentAt(number);
      const { signal: _, ...again } = init;
      const response = await fetch(url, again);
      return { status: response.status, body: await response.text() };
    },
    sendTwice: (now) => {
      isTwice = now;
    },
    requests: model.requests,
    writing: async (count) => {
      await firstValueFrom(
        open$.pipe(
          filter((open) => open >= count),
          timeout(longestMs),
        ),
      );
    },
    stop: async () => {
      await fetch(`http://127.0.0.1:${port}/api/chat/chat-1/stop`, { method: 'POST' });
    },
    release: () => {
      isHeld$.next(false);
      isHeld$.next(true);
    },
    restart: async (options = {}) => {
      await stop();
      // The connections that clients keep alive are closed.
      await new Promise((resolve) => setTimeout(resolve, 20));
      open$.next(0);
      await start(options);
    },
    paid,
    close: async () => {
      await stop();
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    },
  };
};

export const fieldOf = (value: unknown, key: string): unknown =>
  isRecord(value) ? value[key] : undefined;
