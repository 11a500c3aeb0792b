import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, suspend, tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { concatMap, filter, firstValueFrom, of, ReplaySubject, take } from 'rxjs';
import { agUi } from '../ag-ui/index.js';
import { queueOf, waiting } from '../approvals/asking.test-support.js';
import { chatServer, type ChatServer } from './index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Servers of one store, as processes are. The model answers when it is let, by the number of its request. */
const place = () => {
  const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
  const asked$ = new ReplaySubject<string>(Infinity);
  const released$ = new ReplaySubject<string>(Infinity);
  const seen: string[] = [];
  const answer: ScriptedAnswer = ({ messages }) => {
    const last = messages.at(-1);
    const said = JSON.stringify(last?.content ?? '');
    seen.push(said);
    if (said.includes('Where')) {
      return of(toolCall('place', {}, 'w'), { type: 'finish', finish: 'stop' } as const);
    }
    asked$.next(said);
    return released$.pipe(
      filter((it) => said.includes(it)),
      take(1),
      concatMap((it) => of(text(`After ${it}.`), { type: 'finish', finish: 'stop' } as const)),
    );
  };
  const start = () => {
    const server = chatServer(
      createAgent({
        name: 'h',
        model: scriptedModel(...Array<ScriptedAnswer>(9).fill(answer)),
        tools: [tool({ name: 'place', description: 'Asks.', run: () => suspend() })],
      }),
      { store, protocols: [agUi()], onError: () => undefined },
    );
    servers.push(server);
    const send = async (path: string, body?: object, method?: string): Promise<Answer> => {
      const response = await server.respond(
        new Request(`http://localhost/api/chat${path}`, {
          headers: { 'content-type': 'application/json' },
          ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
          ...(method !== undefined && { method }),
        }),
      );
      return { status: response.status, body: await response.text() };
    };
    const history = async () =>
      JSON.parse((await send('/a')).body) as { readonly messages: readonly Message[] };
    return { server, send, history };
  };
  const until = (said: string) => firstValueFrom(asked$.pipe(filter((it) => it.includes(said))));
  return { store, start, seen, until, release: (said: string) => released$.next(said) };
};

interface Message {
  readonly id: string;
  readonly role: string;
  readonly parts: readonly { readonly type: string; readonly toolCallId?: string }[];
}

const question = (id: string, said: string): Message => ({
  id,
  role: 'user',
  parts: [{ type: 'text', text: said } as never],
});
const body = (...messages: readonly object[]) => ({ id: 'a', messages });

/** The messages of a client that has run the tool. */
const withOutput = (messages: readonly Message[], output: string): readonly object[] =>
  messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      part.type === 'tool-place' ? { ...part, state: 'output-available', output } : part,
    ),
  }));

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 30; turn += 1) await new Promise(setImmediate);
};

describe('T13: two servers, and a tool call that waits', () => {
  /** What another client does at the other server, with the conversation as it has read it. */
  const others: Readonly<
    Record<
      string,
      (
        at: ReturnType<ReturnType<typeof place>['start']>,
        shown: readonly Message[],
      ) => Promise<Answer>
    >
  > = {
    'a question instead': ({ send }, shown) =>
      send('', body(...shown, question('n', 'Never mind'))),
    'a stop': ({ send }) => send('/a/stop', {}),
    'another result': ({ send }, shown) => send('', body(...withOutput(shown, 'Rome'))),
  };

  it.each(Object.keys(others))('%s is refused while its result is used', async (what) => {
    const { start, seen, until, release } = place();
    const [one, two] = [start(), start()];
    await one.send('', body(question('q', 'Where am I?')));
    const shown = (await two.history()).messages;
    const first = one.send('', body(...withOutput(shown, 'Oslo')));
    await until('Oslo');
    const refused = await others[what]?.(two, shown);
    expect([refused?.status, refused?.body]).toEqual([
      409,
      expect.stringContaining('This has already been answered.'),
    ]);
    release('Oslo');
    expect((await first).body).toContain('After');
    // Nothing else was asked for.
    expect(seen).toHaveLength(2);
    await turns();
    const now = await one.history();
    release('And now');
    const next = await two.send('', body(...now.messages, question('m', 'And now?')));
    expect([next.status, next.body]).toEqual([200, expect.stringContaining('After')]);
  });

  it('its result is refused while a question instead of it is answered', async () => {
    const { start, seen, until, release } = place();
    const [one, two] = [start(), start()];
    await one.send('', body(question('q', 'Where am I?')));
    const shown = (await two.history()).messages;
    const first = one.send('', body(...shown, question('n', 'Never mind')));
    await until('Never');
    const refused = await two.send('', body(...withOutput(shown, 'Oslo')));
    expect([refused.status, refused.body]).toEqual([
      409,
      expect.stringContaining('already been answered'),
    ]);
    release('Never');
    expect((await first).status).toBe(200);
    expect(seen).toHaveLength(2);
  });
});

describe('S12: a server that has read a conversation before another one continued it', () => {
  it('takes the next question after what its client shows', async () => {
    const { start, release } = place();
    const [one, two] = [start(), start()];
    ['one', 'two', 'three'].forEach(release);
    await one.send('', body(question('q', 'one')));
    await two.history();
    const shown = (await one.history()).messages;
    await one.send('', body(...shown, question('r', 'two')));
    const now = (await one.history()).messages;
    const next = await two.send('', body(...now, question('s', 'three')));
    expect([next.status, next.body]).toEqual([200, expect.stringContaining('After three')]);
    expect((await two.history()).messages).toHaveLength(6);
  });

  it('renames it', async () => {
    const { start, release } = place();
    const [one, two] = [start(), start()];
    ['one', 'two'].forEach(release);
    await one.send('', body(question('q', 'one')));
    await two.history();
    await one.send('', body(...(await one.history()).messages, question('r', 'two')));
    const renamed = await two.send('/a', { title: 'Mine' }, 'PATCH');
    expect([renamed.status, renamed.body]).toEqual([200, expect.stringContaining('Mine')]);
    expect((await two.history()).messages).toHaveLength(4);
  });

  it('removes it, or says that a call runs elsewhere and removes nothing', async () => {
    const { start, store, until, release } = place();
    const [one, two] = [start(), start()];
    release('one');
    await one.send('', body(question('q', 'one')));
    const before = await two.history();
    const running = one.send('', body(...before.messages, question('r', 'two')));
    await until('two');
    const refused = await two.send('/a', undefined, 'DELETE');
    expect([refused.status, refused.body]).toEqual([409, expect.stringContaining('elsewhere')]);
    release('two');
    expect((await running).body).toContain('After two');
    expect((await one.history()).messages).toHaveLength(4);
    const removed = await two.send('/a', undefined, 'DELETE');
    expect(removed.status).toBeLessThan(300);
    expect(await firstValueFrom(store.sessions.load$('a'))).toBeUndefined();
  });
});

describe('T13: a result that comes before the approval of the same turn', () => {
  it.each(['AI SDK', 'AG-UI'])('is refused in words, and taken after it: %s', async (protocol) => {
    const approvals = queueOf();
    const paid: unknown[] = [];
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      run: () => {
        paid.push(1);
        return 'Paid.';
      },
    });
    const server = chatServer(
      createAgent({
        name: 'h',
        model: scriptedModel(
          [toolCall('pay', {}, 'p'), toolCall('place', {}, 'w')],
          [text('Done.')],
        ),
        tools: [
          requireApproval(pay, approvals.approve),
          tool({ name: 'place', description: 'Asks.', run: () => suspend() }),
        ],
      }),
      { approvals, protocols: [agUi()] },
    );
    servers.push(server);
    const send = async (path: string, given: object): Promise<Answer> => {
      const response = await server.respond(
        new Request(`http://localhost/api/${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(given),
        }),
      );
      return { status: response.status, body: await response.text() };
    };
    const asked = await send('chat', body(question('q', 'Where?')));
    const id = /"messageId":"([^"]+)"/u.exec(asked.body)?.[1] ?? '';
    const toolCallId = `${id}/1/w`;
    const bring = (runId: string): Promise<Answer> => {
      if (protocol === 'AI SDK') {
        const parts = [
          { type: 'step-start' },
          { type: 'tool-place', toolCallId, state: 'output-available', output: 'Oslo' },
          { type: 'data-suspended', data: { toolCallId, toolName: 'place', localId: 'w' } },
        ];
        return send('chat', body(question('q', 'Where?'), { id, role: 'assistant', parts }));
      }
      const made = {
        id: toolCallId,
        type: 'function',
        function: { name: 'place', arguments: '{}' },
      };
      return send('ag-ui', {
        ...{ threadId: 'a', runId, tools: [], context: [], state: {}, forwardedProps: {} },
        messages: [
          { id: 'q', role: 'user', content: 'Where?' },
          { id: `${id}/1`, role: 'assistant', toolCalls: [made] },
          { id: 't', role: 'tool', toolCallId, content: 'Oslo' },
        ],
      });
    };
    const early = await bring('r1');
    expect([early.status, early.body]).toEqual([
      409,
      expect.stringContaining('Decide on it first.'),
    ]);
    const { token } = await waiting(approvals);
    await approvals.decide(token, true);
    await turns();
    const late = await bring('r2');
    expect([late.status, late.body]).toEqual([200, expect.stringContaining('Done.')]);
    expect(paid).toEqual([1]);
  });
});
