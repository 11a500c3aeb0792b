import { describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, suspend, tool, type Tool } from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { inProcessSessions, keepSessions } from 'millrace/sessions';
import { agentTool } from 'millrace/teams';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { chatServer, type ChatServer, type ChatServerOptions } from '@millrace/server/chat';
import { concat, firstValueFrom, NEVER, of, ReplaySubject, Subject } from 'rxjs';
import { chatPage } from './index.js';

const usage = { type: 'usage', usage: { inputTokens: 30, outputTokens: 4 } } as const;

const serverOf = (
  answers: readonly ScriptedAnswer[],
  tools: readonly Tool[] = [],
  options: ChatServerOptions = {},
) =>
  chatServer(createAgent({ name: 'Helper', model: scriptedModel(...answers), tools }), {
    protocols: [chatPage()],
    ...options,
  });

const posted = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const requesting = (server: ChatServer, headers: Readonly<Record<string, string>> = {}) => {
  const respond = (path: string, init: RequestInit = {}) =>
    server.respond(
      new Request(`http://localhost/api/chat${path}`, {
        ...init,
        headers: { ...headers, ...(init.headers as Record<string, string> | undefined) },
      }),
    );
  return {
    respond,
    ask: async (question: string) => {
      const parts = [{ type: 'text', text: question }];
      const response = await respond('', posted({ id: 'a', messages: [{ role: 'user', parts }] }));
      await response.text();
    },
    facts: async () => {
      const response = await respond('/a/answers');
      const { answers } = (await response.json()) as { answers: Record<string, Chunk[]> };
      return Object.values(answers);
    },
    history: async () => {
      const response = await respond('/a');
      return ((await response.json()) as { messages: { parts: Chunk[] }[] }).messages;
    },
  };
};

interface Chunk {
  readonly type: string;
  readonly [field: string]: unknown;
}

const typesOf = (chunks: readonly Chunk[] = []) => chunks.map(({ type }) => type);

describe('the facts of answers', () => {
  it('have the usage, the sub-agents and the end of each answer, and none of its text', async () => {
    const weather = createAgent({ name: 'weather', model: scriptedModel([text('Rain.')]) });
    const server = serverOf(
      [
        [toolCall('weather', { user_prompt: '?' }), usage, finish()],
        [text('It rains.'), usage],
      ],
      [agentTool(weather, { description: 'Knows the weather.' })],
    );
    const { ask, facts } = requesting(server);
    await ask('?');
    const [chunks = []] = await facts();
    expect(typesOf(chunks)).toEqual(['start', 'data-agent', 'data-agent', 'finish']);
    expect(chunks.at(-1)).toMatchObject({
      messageMetadata: { reason: 'answer', usage: { inputTokens: 60, outputTokens: 8 } },
    });
    expect(JSON.stringify(chunks)).not.toContain('It rains.');
    await server.close();
  });

  it('say that a tool was denied', async () => {
    const pay = requireApproval(
      tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' }),
      () => ({ approved: false, reason: 'secret' }),
    );
    const server = serverOf([[toolCall('pay'), finish()], [text('No.')]], [pay]);
    const { ask, facts } = requesting(server);
    await ask('?');
    const [chunks = []] = await facts();
    expect(chunks.find(({ type }) => type === 'tool-output-error')).toMatchObject({
      providerMetadata: { millrace: { denied: true } },
    });
    expect(JSON.stringify(chunks)).not.toContain('secret');
    await server.close();
  });

  it('are those of all calls of an answer, and of no other user', async () => {
    const where = tool({ name: 'where', description: 'Asks.', run: () => suspend('Where?') });
    const user = ({ headers }: Request) => headers.get('x-user');
    const server = serverOf(
      [
        [toolCall('where', {}, 'w'), usage, finish()],
        [text('Oslo.'), usage],
      ],
      [where],
      { user },
    );
    const { ask, facts, history, respond } = requesting(server, { 'x-user': 'ann' });
    await ask('Where am I?');
    const answer = (await history()).at(-1);
    const parts = answer?.parts.map((part) =>
      part.type === 'tool-where' ? { ...part, state: 'output-available', output: 'Oslo' } : part,
    );
    await (await respond('', posted({ id: 'a', messages: [{ ...answer, parts }] }))).text();
    const all = await facts();
    expect(all.map(typesOf)).toEqual([['start', 'finish', 'start', 'finish']]);
    expect(await requesting(server, { 'x-user': 'eve' }).facts()).toEqual([]);
    expect((await requesting(server).respond('/a/answers')).status).toBe(401);
    await server.close();
  });
});

/** A server whose call was in a tool when the process before it ended. */
const left = async (answers: readonly ScriptedAnswer[]) => {
  const driver = inProcessCalls();
  const sessions = inProcessSessions();
  const send = tool({ name: 'send', description: 'Sends.', run: () => NEVER });
  const model = scriptedModel([toolCall('send', { to: 'Ann' }, 's'), finish()]);
  const agent = createAgent({ name: 'Helper', model, tools: [send] });
  const kept = keepSessions(agent, sessions, { journal: journal(createCallStore(driver)) });
  const session = await kept.open('a');
  await new Promise<void>((resolve) => {
    const call = session.stream$('Send it.').subscribe(({ type }) => {
      if (type !== 'preActing') return;
      setTimeout(() => {
        call.unsubscribe();
        resolve();
      });
    });
  });
  const server = serverOf(answers, [send], {
    store: { calls: createCallStore(driver), sessions },
  });
  return { server, ...requesting(server) };
};

const uncertainIn = (facts: readonly (readonly Chunk[])[]) =>
  facts.flat().filter(({ type }) => type === 'data-uncertain');

describe('an uncertain tool call', () => {
  it.each(['again', 'happened', 'failed'])(
    'S6: takes the word of the user: %s',
    async (outcome) => {
      const answer: ScriptedAnswer = ({ messages }) => {
        const last = messages.at(-1);
        return last?.role === 'tool' ? [text(JSON.stringify(last.content))] : [text('?')];
      };
      const { server, facts, history, respond } = await left([answer]);
      const [uncertain] = uncertainIn(await waitFor(facts, (it) => uncertainIn(it).length > 0));
      const { toolCallId } = uncertain?.['data'] as { toolCallId: string };
      const settle = (body: object) => respond('/a/uncertain', posted(body));
      expect((await settle({ toolCallId, outcome: 'Paid 5.' })).status).toBe(400);
      expect((await settle({ toolCallId: 'other', outcome })).status).toBe(409);
      expect((await settle({ toolCallId, outcome })).status).toBe(200);
      const said = await waitFor(history, (it) => JSON.stringify(it).includes('The user has'));
      expect(said).toHaveLength(2);
      expect(uncertainIn(await facts())).toEqual([]);
      expect((await settle({ toolCallId, outcome })).status).toBe(409);
      await server.close();
    },
  );
});

describe('a second word on an uncertain tool call', () => {
  it('S6: is refused while the first one is being answered', async () => {
    const asked$ = new ReplaySubject<true>(1);
    const go$ = new Subject<never>();
    const slow: ScriptedAnswer = () => {
      asked$.next(true);
      return concat(go$, of(text('Done.'), finish()));
    };
    const { server, facts, respond } = await left([slow]);
    const [uncertain] = uncertainIn(await waitFor(facts, (it) => uncertainIn(it).length > 0));
    const { toolCallId } = uncertain?.['data'] as { toolCallId: string };
    const settle = (outcome: string) => respond('/a/uncertain', posted({ toolCallId, outcome }));
    expect((await settle('again')).status).toBe(200);
    await firstValueFrom(asked$);
    expect((await settle('again')).status).toBe(409);
    expect((await settle('happened')).status).toBe(409);
    go$.complete();
    await server.close();
  });
});

/** Reads until what is read fits. */
const waitFor = async <T>(read: () => Promise<T>, fits: (value: T) => boolean): Promise<T> => {
  for (;;) {
    const value = await read();
    if (fits(value)) return value;
  }
};
