import { HttpAgent, type Message, type RunAgentInput } from '@ag-ui/client';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, type ModelChunk, retry } from 'millrace';
import { finish, type ScriptedAnswer, scriptedModel, text, thinking } from 'millrace/testing';
import { concat, firstValueFrom, of, ReplaySubject, throwError } from 'rxjs';
import { chatServer, type ChatServer } from '../chat/index.js';
import { agUi } from './index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

/** The client, with the route that the server has for `connectAgent`. */
class Client extends HttpAgent {
  protected override connect(input: RunAgentInput) {
    return new HttpAgent({
      url: `${this.url}/connect`,
      ...(this.fetch && { fetch: this.fetch }),
    }).run(input);
  }
}

const serving = (answers: readonly ScriptedAnswer[]): Client => {
  const model = retry(scriptedModel(...answers), { retryPartial: true, minMs: 0 });
  const server = chatServer(createAgent({ name: 'a', model }), { protocols: [agUi()] });
  servers.push(server);
  return new Client({
    url: 'http://localhost/api/ag-ui',
    threadId: 'a',
    initialMessages: [{ id: 'q', role: 'user', content: '?' }],
    // As the network does: a client that leaves ends its response.
    fetch: async (url: string | URL | Request, init?: RequestInit) => {
      const response = await server.respond(new Request(String(url), init));
      const until = init?.signal ? { signal: init.signal } : {};
      return new Response(response.body?.pipeThrough(new TransformStream(), until), response);
    },
  });
};

const lineOf = ({ role, content }: Message): string => `${role}: ${String(content)}`;
const linesOf = ({ messages }: Client): readonly string[] => messages.map(lineOf);

/** An answer that the provider breaks off. */
const broken =
  (...shown: readonly ModelChunk[]) =>
  () =>
    concat(
      of(...shown),
      throwError(() => new MillraceError('connection', 'It was lost.', { retryable: true })),
    );

/** A model that answers piece by piece, until it is ended. */
const held = () => {
  const piece$ = new ReplaySubject<ModelChunk>(Infinity);
  return { piece$, answer: () => piece$ };
};

/** Runs until an event of this type, and leaves. */
const leaveAt = async (client: Client, type: string, name?: string): Promise<readonly string[]> => {
  const seen$ = new ReplaySubject<void>(1);
  const run = client.runAgent(
    {},
    {
      onEvent: ({ event }) => {
        if (event.type === type && (name === undefined || event['name'] === name)) seen$.next();
      },
    },
  );
  await firstValueFrom(seen$);
  const shown = linesOf(client);
  client.abortRun();
  await run.catch(() => undefined);
  return shown;
};

const connected = async (client: Client): Promise<readonly string[]> => {
  const errors: string[] = [];
  await client.connectAgent(
    {},
    {
      onRunErrorEvent: ({ event }) => void errors.push(event.message),
      onRunFailed: ({ error }) => void errors.push(String(error)),
    },
  );
  expect(errors).toEqual([]);
  return linesOf(client);
};

describe('an AG-UI client that connects again', () => {
  it('has no thoughts of a failed attempt while the next one runs', async () => {
    const { piece$, answer } = held();
    const client = serving([broken(thinking('Broken')), answer]);
    const shown = await leaveAt(client, 'CUSTOM', 'millrace.discarded');
    expect(shown).toContain('reasoning: Broken');
    piece$.next(text('Whole.'));
    piece$.next(finish('stop'));
    piece$.complete();
    expect(await connected(client)).toEqual(['user: ?', 'assistant: Whole.']);
  });

  it('has the thoughts of the next attempt once', async () => {
    const { piece$, answer } = held();
    const client = serving([broken(thinking('Broken')), answer]);
    piece$.next(thinking('Whole'));
    const shown = await leaveAt(client, 'CUSTOM', 'millrace.discarded');
    expect(shown).toContain('reasoning: Broken');
    piece$.next(thinking(' thought.'));
    piece$.next(text('Yes.'));
    piece$.next(finish('stop'));
    piece$.complete();
    expect(await connected(client)).toEqual([
      'user: ?',
      'reasoning: Whole thought.',
      'assistant: Yes.',
    ]);
  });

  it('has each thought of the running answer once', async () => {
    const { piece$, answer } = held();
    const client = serving([answer]);
    piece$.next(thinking('Hm, '));
    const shown = await leaveAt(client, 'REASONING_MESSAGE_CONTENT');
    expect(shown.at(-1)).toMatch(/^reasoning:/u);
    piece$.next(thinking('well.'));
    piece$.next(text('Yes.'));
    piece$.next(finish('stop'));
    piece$.complete();
    expect(await connected(client)).toEqual(['user: ?', 'reasoning: Hm, well.', 'assistant: Yes.']);
  });

  it.each([
    ['without a thought', [], []],
    ['with one', [thinking('Whole thought.')], ['reasoning: Whole thought.']],
  ])('has no thought of a broken attempt, after an answer %s', async (_, thoughts, shown) => {
    const client = serving([broken(thinking('Broken')), [...thoughts, text('Whole.')]]);
    await client.runAgent();
    expect(linesOf(client)).toContain('reasoning: Broken');
    expect(await connected(client)).toEqual(['user: ?', ...shown, 'assistant: Whole.']);
    expect(await connected(client)).toEqual(['user: ?', ...shown, 'assistant: Whole.']);
  });

  it('has its messages in their order, by one snapshot if it has them already', async () => {
    const client = serving([[thinking('Hm.'), text('Yes.')], [text('No.')]]);
    await client.runAgent();
    let snapshots = 0;
    const count = { onMessagesSnapshotEvent: () => void (snapshots += 1) };
    const shown = ['user: ?', 'reasoning: Hm.', 'assistant: Yes.'];
    await client.connectAgent({}, count);
    expect([snapshots, linesOf(client)]).toEqual([2, shown]);
    await client.connectAgent({}, count);
    expect([snapshots, linesOf(client)]).toEqual([3, shown]);
    client.addMessage({ id: 'q2', role: 'user', content: '!' });
    await client.runAgent();
    expect(await connected(client)).toEqual([...shown, 'user: !', 'assistant: No.']);
  });

  it('without the messages gets them by one snapshot', async () => {
    const client = serving([[text('Yes.')]]);
    await client.runAgent();
    client.setMessages([]);
    let snapshots = 0;
    await client.connectAgent({}, { onMessagesSnapshotEvent: () => void (snapshots += 1) });
    expect([snapshots, linesOf(client)]).toEqual([1, ['user: ?', 'assistant: Yes.']]);
  });
});
