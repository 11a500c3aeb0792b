import { describe, expect, it } from '@jest/globals';
import { createAgent, type Message, textOf, tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions, type SessionStore } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { isRecord } from 'millrace/values';
import { DefaultChatTransport, type UIMessage } from 'ai';
import fc from 'fast-check';
import { firstValueFrom, NEVER } from 'rxjs';
import { answerIn, readStream } from '../read-as-client.test-support.js';
import { chatServer } from './index.js';

/** What a tab shows of a message. */
interface Shown {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

const ops = ['ask', 'regenerate', 'edit', 'switch', 'reload', 'stop', 'crash', 'lose'] as const;
const moves = fc.array(
  fc.record({ op: fc.constantFrom(...ops), tab: fc.nat(1), pick: fc.nat(99) }),
  { minLength: 1, maxLength: 16 },
);

/** A server over a store that outlasts it, with a model that counts its answers, and uses a tool at each third. */
const world = () => {
  const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
  const requests: (readonly string[])[] = [];
  let answers = 0;
  let isHeld = false;
  const answer: ScriptedAnswer = ({ messages }) => {
    requests.push(saidIn(messages));
    answers += 1;
    if (isHeld) return NEVER;
    const isAsking = answers % 3 === 0 && messages.at(-1)?.role === 'user';
    return isAsking ? [toolCall('look', {}, `t${answers}`)] : [text(`A${answers}`)];
  };
  const look = tool({ name: 'look', description: 'Looks.', run: () => 'Seen.' });
  const start = () => {
    const model = scriptedModel(...Array.from({ length: 200 }, () => answer));
    const agent = createAgent({ name: 'helper', model, tools: [look] });
    // These tabs send all that they show.
    return chatServer(agent, { store, loneQuestion: 'begins' });
  };
  let server = start();
  const send = (method: string, path: string, body?: object) =>
    server.respond(
      new Request(`http://localhost/api/chat${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
  return {
    store,
    requests,
    send,
    hold: (held: boolean) => {
      isHeld = held;
    },
    crash: async () => {
      await server.close({ timeoutMs: 0 });
      isHeld = false;
      server = start();
    },
    close: () => server.close({ timeoutMs: 0 }),
  };
};

/** What people said, without tools. */
const saidIn = (messages: readonly Message[]): readonly string[] =>
  messages
    .filter(({ role }) => role !== 'tool')
    .map(textOf)
    .filter((said) => said !== '');

/** The chunks of a response, as the AI SDK reads it. */
const chunksOf = (response: Response) =>
  new DefaultChatTransport({ fetch: () => Promise.resolve(response) }).sendMessages({
    trigger: 'submit-message',
    chatId: 'a',
    messageId: undefined,
    messages: [],
    abortSignal: undefined,
  });

const partsOf = (said: string) => [{ type: 'text', text: said }];

const shownIn = (body: unknown): readonly Shown[] => {
  const { messages = [] } = Object(body) as { readonly messages?: readonly UIMessage[] };
  return messages.flatMap(({ id, role, ...message }) =>
    role === 'system' ? [] : [{ id, role, text: answerIn({ id, role, ...message }) }],
  );
};

const branchesIn = (body: unknown): readonly string[] => {
  const branches = isRecord(body) && isRecord(body['branches']) ? body['branches'] : {};
  return Object.values(branches).flat().map(String);
};

/** Each tool call has one result, right after it. */
const areValid = async (sessions: SessionStore): Promise<void> => {
  for (const { id } of await firstValueFrom(sessions.find$())) {
    const stored = await firstValueFrom(sessions.load$(id));
    const { messages = [], branches = [] } = Object(stored?.state) as {
      messages?: readonly Message[];
      branches?: readonly { after: string | null; message: Message }[];
    };
    const entries = [
      ...messages.map((message, at) => ({ message, after: messages[at - 1]?.id ?? null })),
      ...branches,
    ];
    for (const { message } of entries) {
      const asked = message.content.flatMap((block) =>
        block.type === 'tool_call' ? [block.id] : [],
      );
      if (message.role !== 'assistant' || asked.length === 0) continue;
      const after = entries.filter((entry) => entry.after === message.id);
      expect(after.map((entry) => entry.message.role)).toEqual(['tool']);
    }
  }
};

describe('S12: for any views of two tabs', () => {
  it('the model reads what the tab shows, and no answer is lost', async () => {
    const property = fc.asyncProperty(moves, async (all) => {
      const { store, requests, send, hold, crash, close } = world();
      const tabs: (readonly Shown[])[] = [[], []];
      const seen = new Set<string>();
      let count = 0;
      const picture = (messages: readonly Shown[]) =>
        messages.map(({ id, role, text: said }) => ({ id, role, parts: partsOf(said) }));
      const load = async (tab: number, at?: string) => {
        const query = at === undefined ? '' : `?at=${encodeURIComponent(at)}`;
        const body: unknown = await (await send('GET', `/a${query}`)).json();
        tabs[tab] = shownIn(body);
        return body;
      };
      /** Sends what a tab shows; `held`: it does not wait for the answer. */
      const submit = async (tab: number, shown: readonly Shown[], more: object, held = false) => {
        tabs[tab] = shown;
        const before = requests.length;
        const response = await send('POST', '', { id: 'a', messages: picture(shown), ...more });
        expect(response.status).toBe(200);
        if (held) return response;
        const { message } = await readStream(await chunksOf(response));
        const said = answerIn(message);
        seen.add(said);
        expect(requests[before]).toEqual(shown.map((it) => it.text));
        tabs[tab] = [...shown, { id: message.id, role: 'assistant', text: said }];
        return response;
      };
      const question = (id?: string): Shown => {
        count += 1;
        return { id: id ?? `q${count}`, role: 'user', text: `Q${count}` };
      };
      for (const { op, tab, pick } of all) {
        const shown = tabs[tab] ?? [];
        const users = shown.flatMap(({ role }, at) => (role === 'user' ? [at] : []));
        const at = users[pick % Math.max(1, users.length)];
        if (op === 'reload' || op === 'switch') {
          const body = await load(tab);
          const ids = branchesIn(body);
          if (op === 'switch' && ids.length > 0) await load(tab, ids[pick % ids.length]);
        } else if (op === 'ask' || at === undefined) {
          await submit(tab, [...shown, question()], { trigger: 'submit-message' });
        } else if (op === 'edit') {
          const id = shown[at]?.id ?? '';
          const more = { trigger: 'submit-message', messageId: id };
          await submit(tab, [...shown.slice(0, at), question(id)], more);
        } else if (op === 'regenerate') {
          const answer = shown[at + 1];
          const more = { trigger: 'regenerate-message', ...(answer && { messageId: answer.id }) };
          await submit(tab, shown.slice(0, at + 1), more);
        } else if (op === 'lose') {
          // The request never arrives, and the tab keeps its question.
          tabs[tab] = [...shown, question()];
        } else {
          hold(true);
          const own = [...shown, question()];
          const response = await submit(tab, own, { trigger: 'submit-message' }, true);
          expect(requests.at(-1)).toEqual(own.map((it) => it.text));
          hold(false);
          if (op === 'crash') await crash();
          else await send('POST', '/a/stop');
          await response.body?.cancel();
          // What is there now: the answer of a call that goes on, or of one that was stopped.
          await (await send('GET', '/a/stream')).text();
          await load(tab);
        }
      }
      const reachable = new Set<string>();
      const open = ['', ...branchesIn(await (await send('GET', '/a')).json())];
      const known = new Set<string>();
      for (let id = open.pop(); id !== undefined; id = open.pop()) {
        if (known.has(id)) continue;
        known.add(id);
        const query = id === '' ? '' : `?at=${encodeURIComponent(id)}`;
        const body: unknown = await (await send('GET', `/a${query}`)).json();
        for (const { text: said } of shownIn(body)) reachable.add(said);
        open.push(...branchesIn(body));
      }
      expect([...seen].filter((said) => !reachable.has(said))).toEqual([]);
      await areValid(store.sessions);
      await close();
    });
    await fc.assert(property, { numRuns: 60 });
  });
});
