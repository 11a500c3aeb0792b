import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { a2a } from '@millrace/a2a/server';
import { type Agent, createAgent, type ResultSource, toolResults } from 'millrace';
import { journal } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import {
  type FaultServer,
  type Played,
  responseObject,
  responsesEvents,
  startFaultServer,
  streamed,
  streamOf,
} from '@millrace/fault-server';
import { openai } from '@millrace/openai';
import { agUi } from '@millrace/server/ag-ui';
import { serve } from '@millrace/server/node';
import { openAi } from '@millrace/server/openai';
import { openFiles, type Store } from '@millrace/store';
import { firstValueFrom, ReplaySubject, type Subscription, take } from 'rxjs';
import { approvingClients, openAiOf } from './approving-clients.test-support.js';

const approval = {
  type: 'mcp_approval_request',
  id: 'mcpr_1',
  name: 'roll',
  server_label: 'dice',
  arguments: '{"dice":"2d4"}',
};
const asks = streamed(
  responsesEvents([
    { type: 'response.output_item.done', output_index: 0, item: approval },
    {
      type: 'response.completed',
      response: responseObject({ status: 'completed', output: [approval] }),
    },
  ]),
);

let vendors: FaultServer;
let directory = '';
beforeAll(async () => {
  vendors = await startFaultServer();
  directory = await mkdtemp(join(tmpdir(), 'millrace-approvals-'));
});
afterAll(async () => {
  await vendors.close();
  await rm(directory, { recursive: true });
});

const running: Subscription[] = [];
const stores: Store[] = [];
afterEach(async () => {
  running.splice(0).forEach((server) => {
    server.unsubscribe();
  });
  for (const store of stores.splice(0)) await closed(store);
});

const closed = ({ close$ }: Store) => firstValueFrom(close$(), { defaultValue: undefined });

/** A vendor whose model asks for an approval, and then says that it is done. */
const vendorOf = () =>
  vendors.play({ responses: [asks, streamed(streamOf('responses', { text: 'Done.' }))] });

const agentOf = ({ url }: Played, mcpApprovals?: ResultSource): Agent =>
  createAgent({
    name: 'helper',
    model: openai.responses('gpt-5-mini', {
      apiKey: 'sk-test',
      baseURL: url,
      retry: false,
      ...(mcpApprovals !== undefined && { mcpApprovals }),
    }),
  });

let opened = 0;
const storeIn = (name: string): Store => {
  const store = openFiles(join(directory, name));
  stores.push(store);
  return store;
};

interface Place {
  readonly store?: Store;
  readonly port?: number;
  readonly hasUsers?: boolean;
}

/** Serves an agent with all protocols. */
const serving = async (
  agent: Agent,
  { store = storeIn(`s${(opened += 1)}`), port = 0, hasUsers = true }: Place = {},
) => {
  const listening$ = new ReplaySubject<Listening>(1);
  const ended$ = new ReplaySubject<void>(1);
  const served = serve(agent, {
    ...{ port, store, signals: [], closeMs: 0 },
    protocols: [agUi(), openAi(), a2a()],
    ...(hasUsers && { user: (request: Request) => request.headers.get('x-user') ?? undefined }),
  }).subscribe({
    next: (it) => {
      listening$.next(it);
    },
    error: (error: unknown) => {
      listening$.error(error);
    },
    complete: () => {
      ended$.next();
    },
  });
  running.push(served);
  const { url, port: at, close$ } = await firstValueFrom(listening$);
  const close = async (): Promise<void> => {
    close$.subscribe({ error: (error: unknown) => ended$.error(error) });
    await firstValueFrom(ended$.pipe(take(1)));
    await closed(store);
  };
  return { url, port: at, store, close };
};

type Listening = Parameters<NonNullable<Parameters<ReturnType<typeof serve>['subscribe']>[0]>>[0];

/** The items that answer the approval in the requests after the first. */
const sentTo = async (vendor: Played): Promise<readonly unknown[]> => {
  const requests = await vendor.requests();
  expect(requests.flatMap(({ violations }) => violations)).toEqual([]);
  return requests.slice(1).map(({ body }) => {
    const { input } = body as { readonly input: readonly unknown[] };
    expect(input).toContainEqual(approval);
    return input.at(-1);
  });
};

const decided = (approve: boolean, reason?: string) => ({
  type: 'mcp_approval_response',
  approval_request_id: 'mcpr_1',
  approve,
  ...(reason !== undefined && { reason }),
});

const shown = { tool: 'approve_roll', input: { dice: '2d4' } };

const rows = approvingClients.map((client) => [client.name, client] as const);
const ann = 'ann';

describe.each(rows)('T13: an approval of a hosted tool, over %s', (_, client) => {
  it.each<[string, unknown, unknown]>([
    ['a yes', true, decided(true)],
    ['a yes, in full', { approved: true }, decided(true)],
    ['a no', false, decided(false)],
    ['a reason', { approved: false, reason: 'Too risky.' }, decided(false, 'Too risky.')],
    ['a word', 'yes', decided(false)],
    [
      'other arguments',
      { approved: true, input: { dice: '1d2' } },
      decided(false, 'The arguments cannot be edited.'),
    ],
  ])('is shown to its person, and sent to the vendor: %s', async (__, decision, expected) => {
    const vendor = await vendorOf();
    const { url } = await serving(agentOf(vendor));
    const open = await client.ask({ url, user: ann });
    expect(open.shown).toEqual(shown);
    expect(await open.bring({ url, user: ann }, 'mcpr_1', decision)).toBe('Done.');
    expect(await sentTo(vendor)).toEqual([expected]);
  });

  it('is taken neither from another user nor by an unknown id', async () => {
    const vendor = await vendorOf();
    const { url } = await serving(agentOf(vendor));
    const open = await client.ask({ url, user: ann });
    const { refused } = client;
    expect(await open.bring({ url, user: 'eve' }, 'mcpr_1', true)).toBe(refused.ofOthers);
    expect(await open.bring({ url, user: ann }, 'mcpr_2', true)).toBe(refused.unknown);
    expect(await sentTo(vendor)).toEqual([]);
    expect(await open.bring({ url, user: ann }, 'mcpr_1', true)).toBe('Done.');
    expect(await sentTo(vendor)).toEqual([decided(true)]);
  });

  it('waits in the store while the server is restarted', async () => {
    const vendor = await vendorOf();
    const name = `s${(opened += 1)}`;
    const first = await serving(agentOf(vendor), { store: storeIn(name) });
    const open = await client.ask({ url: first.url, user: ann });
    await first.close();
    const { url } = await serving(agentOf(vendor), { store: storeIn(name) });
    expect(await open.bring({ url, user: ann }, 'mcpr_1', true)).toBe('Done.');
    expect(await sentTo(vendor)).toEqual([decided(true)]);
  });

  it("is neither shown to nor taken from a client with mcpApprovals: 'program'", async () => {
    const vendor = await vendorOf();
    const agent = agentOf(vendor, 'program');
    const name = `s${(opened += 1)}`;
    const server = await serving(agent, { store: storeIn(name), hasUsers: false });
    const by = { url: server.url, user: ann };
    const open = await client.ask(by);
    expect(open.shown).toBeUndefined();
    expect(await open.bring(by, 'mcpr_1', true)).toBe(client.refused.forProgram);
    expect(await sentTo(vendor)).toEqual([]);
    await server.close();
    const store = storeIn(name);
    const kept = keepSessions(agent, store.sessions, { journal: journal(store.calls) });
    const session = await kept.open(open.session);
    expect((await session.call(toolResults({ mcpr_1: true }))).text).toBe('Done.');
    await session.close();
    expect(await sentTo(vendor)).toEqual([decided(true)]);
  });
});

it.each([false, true])(
  'T13: an approval of a hosted tool needs a server that keeps the conversation: a completion is an error (stream: %s)',
  async (stream) => {
    const vendor = await vendorOf();
    const { url } = await serving(agentOf(vendor));
    const { client } = openAiOf({ url, user: ann });
    const asked = client.chat.completions.create({
      model: 'helper',
      messages: [{ role: 'user', content: 'Roll.' }],
      stream,
    });
    const read = async (): Promise<unknown> => {
      const answer = await asked;
      if ('choices' in answer) return answer;
      const chunks: unknown[] = [];
      for await (const chunk of answer) chunks.push(chunk);
      return chunks;
    };
    await expect(read()).rejects.toThrow('Ask with the Responses API');
  },
);
