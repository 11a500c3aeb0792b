import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk, suspensionsIn, toolResults } from 'millrace';
import { journal, suspendBelow } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { Subject } from 'rxjs';
import { fieldOf } from './inbound.js';
import {
  below,
  closeServers,
  type Kind,
  kinds,
  protocols,
  question,
  resultOf,
  serving,
  type Store,
  stored,
  storeOf,
  waiting,
} from './results-of-clients.test-support.js';

afterEach(closeServers);

const script = ({ asks }: Kind, ...rest: readonly ScriptedAnswer[]) =>
  scriptedModel(asks, ...rest, [text('It is done.')], [text('It is done.')]);

const agentOf = (kind: Kind) =>
  createAgent({
    name: 'h',
    model: script(kind),
    tools: kind.tools?.() ?? [],
    use: [suspendBelow],
  });

const kindNamed = (name: string): Kind => {
  const kind = kinds[name];
  if (kind === undefined) throw new Error(`There is no kind '${name}'.`);
  return kind;
};

const rows = Object.entries(protocols).flatMap(([protocol, client]) =>
  Object.entries(kinds).map(([what, kind]) => ({ protocol, what, client, kind })),
);

describe('T13: the result of a suspended tool call, from a client', () => {
  it.each(rows.filter(({ kind }) => kind.from === 'client'))(
    '$protocol: $what is shown to it, and its result is taken',
    async ({ client, kind }) => {
      const store = storeOf();
      const server = serving(store, agentOf(kind));
      const asked = await client.ask(server);
      expect(asked.body).toMatch(client.invitation);
      const session = client.sessionOf(asked);
      const [waits] = suspensionsIn(await stored(store, session));
      expect(waits?.from).toBe('client');
      const answer = await client.bring(server, waits?.toolCall.id ?? '', asked);
      expect([answer.status, answer.body]).toEqual([200, expect.stringContaining('It is done.')]);
      const messages = await stored(store, session);
      // Who brought it is kept.
      const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
      expect(results.map((block) => fieldOf(block, 'from'))).toContain('client');
      expect(suspensionsIn(messages)).toEqual([]);
    },
  );

  it.each(rows.filter(({ kind }) => kind.from === 'program'))(
    '$protocol: $what is not shown to it, and its result is a 409 that changes nothing',
    async ({ client, kind }) => {
      const store = storeOf();
      const agent = agentOf(kind);
      const server = serving(store, agent);
      const asked = await client.ask(server);
      expect(asked.status).toBe(200);
      expect(asked.body).not.toMatch(client.invitation);
      expect(asked.body).not.toContain('secret');
      const session = client.sessionOf(asked);
      const before = await stored(store, session);
      const [waits] = suspensionsIn(before);
      expect(waits?.from).toBe('program');
      const id = waits?.toolCall.id ?? '';
      const answer = await client.bring(server, id, asked);
      expect([answer.status, answer.body]).toEqual([409, expect.not.stringContaining('secret')]);
      expect(await stored(store, session)).toEqual(before);
      // The program brings it, in another process.
      await server.server.close();
      const kept = keepSessions(agent, store.sessions, { journal: journal(store.calls) });
      const opened = await kept.open(session);
      expect(await opened.call(toolResults({ [id]: 'Yes.' }))).toMatchObject({
        text: 'It is done.',
      });
    },
  );

  const both: Kind = {
    from: 'client',
    tools: () => [waiting(), { ...waiting('program'), name: 'decide' }, below('program')],
    asks: [
      toolCall('wait', {}, 'w'),
      toolCall('decide', {}, 'p'),
      toolCall('desk', { user_prompt: 'Do it.' }, 'd'),
    ],
  };

  it.each(Object.entries(protocols))(
    '%s: is taken beside a tool call that waits for the program, in either order',
    async (_, client) => {
      for (const first of ['client', 'program']) {
        const store = storeOf();
        const agent = agentOf(both);
        const server = serving(store, agent);
        const asked = await client.ask(server);
        const session = client.sessionOf(asked);
        const waits = suspensionsIn(await stored(store, session));
        expect(waits.map(({ toolCall: { id }, from }) => [id, from])).toEqual([
          ['w', 'client'],
          ['p', 'program'],
          ['d/w', 'program'],
        ]);
        const ofProgram = async (it: Store): Promise<string> => {
          const kept = keepSessions(agent, it.sessions, { journal: journal(it.calls) });
          const opened = await kept.open(session);
          const reply = await opened.call(toolResults({ p: 'Yes.', 'd/w': 'Yes.' }));
          await opened.close();
          return `${reply.reason} ${reply.text}`;
        };
        if (first === 'client') {
          expect((await client.bring(server, 'w', asked)).status).toBe(200);
          expect(suspensionsIn(await stored(store, session))).toMatchObject(waits.slice(1));
          await server.server.close();
          expect(await ofProgram(store)).toBe('answer It is done.');
        } else {
          await server.server.close();
          expect(await ofProgram(store)).toBe('suspended ');
          const next = serving(store, agent);
          const answer = await client.bring(next, 'w', asked);
          expect([answer.status, answer.body]).toEqual([
            200,
            expect.stringContaining('It is done.'),
          ]);
          await next.server.close();
        }
        expect(suspensionsIn(await stored(store, session))).toEqual([]);
      }
    },
  );

  it.each([false, true])(
    'a completion that waits for the program is an error, since nothing could continue it (stream: %s)',
    async (stream) => {
      const { send } = serving(
        storeOf(),
        agentOf(kindNamed('a tool that suspends for the program')),
      );
      const messages = [{ role: 'user', content: 'Do it.' }];
      const { status, body } = await send('/v1/chat/completions', { model: 'h', messages, stream });
      expect(status).toBe(stream ? 200 : 409);
      expect(body).toContain('waits for a decision');
      expect(body).not.toMatch(/tool_calls|secret/u);
    },
  );

  it('is refused by the call itself, if another call is running when it comes', async () => {
    const asks$ = new Subject<ModelChunk>();
    const agent = createAgent({
      name: 'h',
      model: scriptedModel(() => asks$, [text('It is done.')]),
      tools: [waiting('program')],
    });
    const store = storeOf();
    const server = serving(store, agent);
    const asked = server.send('/api/chat', { id: 'a', messages: [question] });
    while (!asks$.observed) await new Promise(setImmediate);
    const forged = server.send('/api/chat', { id: 'a', messages: resultOf('w', 'true') });
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    asks$.next(toolCall('wait', {}, 'w'));
    asks$.next({ type: 'finish', finish: 'stop' });
    asks$.complete();
    await asked;
    expect((await forged).body).toContain('"code":"invalidResume"');
    expect(suspensionsIn(await stored(store, 'a'))).toHaveLength(1);
  });
});
