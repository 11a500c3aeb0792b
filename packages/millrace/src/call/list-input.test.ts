import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lastValueFrom, map, of, throwError } from 'rxjs';
import {
  createAgent,
  history,
  inProcessMemory,
  type InputMessage,
  interruptOn,
  isMillraceError,
  on,
  prepare,
  sequential,
  suspend,
  textBlock,
  textOf,
  tool,
  toolResults,
} from '../index.js';
import {
  calls$,
  createCallStore,
  fork$,
  inProcessCalls,
  journal,
  otherQuestion,
} from '../journal/index.js';
import { all, journalIn } from '../journal/stored-calls.test-support.js';
import { fitContext } from '../layers/fitting/index.js';
import { guardInput } from '../layers/guards/index.js';
import { inProcessLongTermMemory, withLongTermMemory } from '../layers/long-term-memory/index.js';
import { analyseTask, rewriteQuestion } from '../layers/planning/index.js';
import { retrieve } from '../layers/retrieval/index.js';
import { selectTools } from '../layers/select-tools.js';
import { sessions } from '../layers/sessions/index.js';
import { asAgent, carryLast, createStep, handoff, hub } from '../layers/teams/index.js';
import { insertBefore } from '../phases/phase-list.js';
import { reasoning } from '../phases/reasoning.js';
import { unpaired } from '../values/pairing.js';
import { record, type ScriptedModel, scriptedModel, text, toolCall } from '../testing/index.js';
import { strictHistory } from '../memories/repair.js';

const user = (said: string, name?: string): InputMessage => ({
  role: 'user',
  content: [textBlock(said)],
  ...(name !== undefined && { name }),
});
const assistant = (said: string, name?: string): InputMessage => ({
  role: 'assistant',
  content: [textBlock(said)],
  ...(name !== undefined && { name }),
});
const asks = (id: string, name = 'look'): InputMessage => ({
  role: 'assistant',
  content: [{ type: 'tool_call', id, name, input: {} }],
});
const result = (toolCallId: string, said = 'seen'): InputMessage => ({
  role: 'tool',
  content: [{ type: 'tool_result', toolCallId, content: [textBlock(said)], isError: false }],
});

const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });
const hear = tool({ name: 'hear', description: 'Hears.', run: () => 'heard' });

/** An agent with everything that reads the question, and what each of them has read. */
const curious = (contextWindow = 600) => {
  const read: unknown[] = [];
  const model = scriptedModel(...Array.from({ length: 12 }, () => () => [text('Answer.')]));
  const memory = inProcessLongTermMemory();
  const watching: typeof memory = {
    ...memory,
    recall$: (_scope, query) => {
      read.push({ recalled: query.text });
      return of([]);
    },
    record$: (scope, entries) => {
      read.push({ recorded: entries.map((it) => it.text) });
      return memory.record$(scope, entries);
    },
  };
  const options = {
    name: 'me',
    model,
    tools: [look, hear],
    use: [
      rewriteQuestion(),
      retrieve(
        {
          retrieve$: ({ text: query }) => {
            read.push({ retrieved: query });
            return of([{ source: 'a', text: 'A passage.' }]);
          },
        },
        { placement: 'beforeInput' },
      ),
      selectTools({
        select: ({ text: query }) => {
          read.push({ selected: query });
          return ['look'];
        },
      }),
      guardInput(({ text: guarded, input }) => {
        read.push({ guarded, input });
        return true;
      }),
      insertBefore(reasoning, analyseTask()),
      fitContext({ contextWindow, reserve: 100 }),
    ],
  };
  return { read, model, agent: createAgent(withLongTermMemory(options, { memory: watching })) };
};

const unit: fc.Arbitrary<readonly InputMessage[]> = fc.oneof(
  fc.constantFrom(1, 40, 200).map((times) => [user('word '.repeat(times))]),
  fc.constantFrom(1, 40).map((times) => [assistant('reply '.repeat(times))]),
  fc.constant([assistant('Mine.', 'other')]),
  fc.nat(99).map((n) => [asks(`t${n}`), result(`t${n}`, 'seen '.repeat(n))]),
  fc.nat(99).map((n) => [asks(`open${n}`)]),
);

/** A conversation whose last message is not of the user. */
const conversations = fc
  .array(unit, { minLength: 1, maxLength: 8 })
  .map((units) => units.flat())
  .map((messages) =>
    messages.at(-1)?.role === 'user' ? [...messages, assistant('Yes.')] : messages,
  );

const options = { callId: 'c', metadata: { userId: 'u' } } as const;

const without = (events: readonly object[]): unknown =>
  JSON.parse(
    JSON.stringify(events, (key, value: unknown) =>
      ['at', 'createdAt', 'elapsedMs', 'ms'].includes(key) ? undefined : value,
    ),
  );

/** Blank space between messages may differ. */
const flat = (words: string): string => words.replace(/\s+/g, ' ');

const textIn = (value: unknown, key: string): string | undefined => {
  const found: unknown = Object.entries(value ?? {}).find(([name]) => name === key)?.[1];
  return typeof found === 'string' ? flat(found) : undefined;
};

const textsOf = (model: ScriptedModel, nth = 0) => model.requests[nth]?.messages.map(textOf);

describe('a list of messages as input', () => {
  it('L9: is a question with the history before it, for everything that reads them', async () => {
    await fc.assert(
      fc.asyncProperty(
        conversations,
        fc.constantFrom('And now?', 'look '.repeat(20)),
        async (before, question) => {
          const list = curious();
          const apart = curious();
          const ofList = await record(list.agent.stream$([...before, question], options));
          const ofApart = await record(
            apart.agent.stream$(question, { ...options, use: [history(before)] }),
          );
          expect(list.model.requests).toEqual(apart.model.requests);
          expect(list.read).toEqual(apart.read);
          expect(without(ofList)).toEqual(without(ofApart));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('L9, C2: fitContext leaves out the messages before the question', async () => {
    const model = scriptedModel([text('Well.')]);
    const agent = createAgent({ model, use: [fitContext({ contextWindow: 500, reserve: 100 })] });
    const long = 'word '.repeat(300);
    await agent.call([user(long), assistant(long), 'And now?']);
    expect(textsOf(model)).toEqual([expect.stringMatching(/left out here\.\]\n\nAnd now\?$/)]);
  });

  it('L9: unanswered messages of the user are one question, for guards too', async () => {
    const seen: string[] = [];
    const model = scriptedModel([text('Well.')]);
    const guard = guardInput(({ text: asked }) => seen.push(asked) > 0);
    await createAgent({ model, use: [guard] }).call([
      user('One'),
      assistant('Two'),
      user('A report.'),
      'Sum it up.',
    ]);
    expect(seen).toEqual(['A report.\n\nSum it up.']);
    expect(textsOf(model)).toEqual(['One', 'Two', 'A report.', 'Sum it up.']);
  });

  it('L9: messages of the user in a row are one question for everything that reads it', async () => {
    const { agent, read } = curious();
    await agent.call([user('One'), assistant('Two'), user('A report.'), 'Sum it up.'], options);
    const whole = 'A report.\n\nSum it up.';
    for (const key of ['guarded', 'retrieved', 'selected', 'recalled']) {
      expect([key, read.some((it) => textIn(it, key) === flat(whole))]).toEqual([key, true]);
    }
  });

  it('L9, S11: results without their tool call at the start of a list are repaired as in a history', async () => {
    const model = scriptedModel([text('Well.')], [text('Well.')]);
    const cut = [result('lost'), assistant('One'), user('Two'), assistant('Three')];
    const agent = createAgent({ model });
    const events = await record(agent.stream$([...cut, 'Four'], { callId: 'c' }));
    expect(events.filter(({ type }) => type === 'warning')).toHaveLength(1);
    await agent.call('Four', { callId: 'c', use: [history(cut)] });
    expect(model.requests[0]).toEqual(model.requests[1]);
  });

  it('L9, S11: an open tool call before the question is repaired as in a history', async () => {
    const model = scriptedModel([text('Well.')]);
    const list = [user('One'), asks('t1'), user('Never mind.')];
    const events = await record(createAgent({ model }).stream$(list));
    expect(unpaired(model.requests[0]?.messages ?? [])).toBeUndefined();
    expect(events.find(({ type }) => type === 'warning')).toMatchObject({
      message: expect.stringContaining('a tool call without exactly one result') as unknown,
    });
    const strict = createAgent({ model, use: [strictHistory()] });
    await expect(strict.call(list)).rejects.toMatchObject({ code: 'memory' });
  });

  it('L9: results of tools that the program ran follow the question, and are no part of it', async () => {
    const { agent, read, model } = curious(100_000);
    const list = [user('Old'), assistant('Old, too'), user('Look!'), asks('t1'), result('t1')];
    const reply = await agent.call(list, options);
    expect(reply.text).toBe('Answer.');
    expect(read).toContainEqual({ retrieved: 'Look!' });
    expect(read).toContainEqual({ selected: 'Look!' });
    expect(read).toContainEqual({ recalled: 'Look!' });
    const request = model.requests.at(-1)?.messages ?? [];
    expect(request.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'user',
      'assistant',
      'tool',
      'user',
    ]);
    expect(unpaired(request)).toBeUndefined();
  });

  it('L9: results may have a message each, before the question and after it', async () => {
    const both = (ids: readonly [string, string]): InputMessage => ({
      role: 'assistant',
      content: ids.map((id) => ({ type: 'tool_call', id, name: 'look', input: {} })),
    });
    const model = scriptedModel([text('Well.')]);
    const list = [
      user('1'),
      both(['a', 'b']),
      result('a'),
      result('b'),
      user('2'),
      both(['c', 'd']),
      result('c'),
      result('d'),
    ];
    const events = await record(createAgent({ model, tools: [look] }).stream$(list));
    expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
    const [request] = model.requests;
    expect(request?.messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'user', 'assistant', 'tool'],
    ]);
    expect(unpaired(request?.messages ?? [])).toBeUndefined();
  });

  it('L9, C2: of many tool calls after the question, the oldest are left out', async () => {
    const model = scriptedModel([text('Well.')]);
    const agent = createAgent({ model, use: [fitContext({ contextWindow: 1_000, reserve: 100 })] });
    const steps = Array.from({ length: 20 }, (_, n) => [
      asks(`t${n}`),
      result(`t${n}`, 'word '.repeat(100)),
    ]);
    await agent.call([user('Look!'), ...steps.flat()]);
    const [request] = model.requests;
    expect(request?.messages.length).toBeLessThan(20);
    expect(textOf(request?.messages[0] ?? { content: [] })).toContain('Look!');
    expect(unpaired(request?.messages ?? [])).toBeUndefined();
  });

  it.each<readonly [string, readonly (InputMessage | string)[], readonly string[]]>([
    ['only an assistant message', [assistant('Mine.')], ['Mine.']],
    ['a question and an answer that the model shall continue', ['Q', assistant('A')], ['Q', 'A']],
    ['replies of others', [assistant('A', 'a'), assistant('B', 'b')], ['A', 'B']],
    ['one message', ['Q'], ['Q']],
  ])('L9: %s', async (_, list, texts) => {
    const model = scriptedModel([text('ok')]);
    await createAgent({ name: 'me', model }).call(list);
    expect(textsOf(model)).toEqual(texts);
  });

  it.each([
    [[], /it is empty/],
    [[{ role: 'system', content: 'Be kind.' }, 'Q'], /role 'system'.*'instructions'/],
    [
      ['Q', assistant('A'), { role: 'developer', content: 'Be kind.' }, 'Q'],
      /The input .*'developer'/,
    ],
    [['Q', { role: 'robot', content: 'x' }, 'Q'], /The input cannot be read/],
    [['Q', asks('t')], /a tool call without exactly one result/],
  ])('L9: %j is refused, with what to pass', async (list, message) => {
    const model = scriptedModel();
    const error: unknown = await createAgent({ model })
      .call(list as never)
      .catch((it: unknown) => it);
    expect(isMillraceError(error) && error.code).toBe('invalidRequest');
    expect(String(error)).toMatch(message);
  });

  it('L9: comes after a history that is given, too', async () => {
    const model = scriptedModel([text('ok')]);
    const use = [history([user('1'), assistant('2')])];
    await createAgent({ model }).call([user('3'), assistant('4'), '5'], { use });
    expect(textsOf(model)).toEqual(['1', '2', '3', '4', '5']);
    const ids = model.requests[0]?.messages.map(({ id }) => id) ?? [];
    expect(new Set(ids).size).toBe(5);
  });

  it('L9: a preCall event and interceptors have the question only', async () => {
    const model = scriptedModel([text('ok')]);
    const seen: string[] = [];
    const agent = createAgent({
      model,
      use: [
        prepare(map((asked) => ({ ...asked, input: [user('changed')] }))),
        on(
          'preCall',
          map((event) => (seen.push(...event.input.map(textOf)), event)),
        ),
      ],
    });
    await agent.call([user('1'), assistant('2'), '3']);
    expect(seen).toEqual(['3']);
    expect(textsOf(model)).toEqual(['1', '2', 'changed']);
  });
});

describe('a list of messages as input of a session', () => {
  it('L9, S1: is stored whole and once, and is history for what reads the question', async () => {
    const { agent, read, model } = curious(100_000);
    const memory = inProcessMemory();
    const session = sessions(agent, { memory }).open('s');
    await session.call('Hello', options);
    const list = [user('One'), asks('t1', 'hear'), result('t1'), assistant('Two'), user('Three')];
    await session.call(list, { ...options, callId: 'd' });
    await session.call('Four', { ...options, callId: 'e' });
    const stored = (await lastValueFrom(session.memory.load$())).map((it) => it.id);
    expect(new Set(stored).size).toBe(stored.length);
    expect((await lastValueFrom(session.memory.load$())).map(textOf)).toEqual([
      'Hello',
      'Answer.',
      'One',
      '',
      '',
      'Two',
      'Three',
      'Answer.',
      'Four',
      'Answer.',
    ]);
    expect(read).toContainEqual({ guarded: 'Three', input: [expect.anything()] });
    for (const { tools } of model.requests)
      expect((tools ?? []).map(({ name }) => name)).not.toContain('hear');
    expect(unpaired(model.requests.at(-1)?.messages ?? [])).toBeUndefined();
  });

  it('L9, S1: is kept if the call is interrupted before it opens', async () => {
    const model = scriptedModel([text('Well.')]);
    const session = sessions(createAgent({ model })).open('s');
    const use = [interruptOn(of(undefined))];
    const reply = await session.call([user('1'), assistant('2'), '3'], { use });
    expect(reply.reason).toBe('interrupted');
    await session.call('4');
    expect(textsOf(model)).toEqual(['1', '2', '3', reply.text, '4']);
  });

  it('L9, S3: is kept if the call fails', async () => {
    const model = scriptedModel(
      throwError(() => new Error('down')),
      [text('Well.')],
    );
    const session = sessions(createAgent({ model })).open('s');
    await session.call([user('1'), assistant('2'), '3']).catch(() => undefined);
    await session.call('4');
    expect(textsOf(model, 1)).toEqual(['1', '2', '3', '4']);
  });

  it('L9, T13: may have the results of tools that wait first', async () => {
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => suspend() });
    const model = scriptedModel([toolCall('wait', {}, 'w')], [text('Well.')]);
    const session = sessions(createAgent({ model, tools: [wait] })).open('s');
    const [waiting] = (await session.call('?')).suspensions ?? [];
    const brought = toolResults({ [waiting?.toolCall.id ?? '']: 'Now.' });
    expect((await session.call([brought, user('By the way')])).text).toBe('Well.');
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'user',
    ]);
  });
});

describe('a list of messages as input of a journaled call', () => {
  const list = [user('1'), assistant('2', 'other'), assistant('3'), user('4'), user('5')];

  it.each([0, 1, 2, 3])(
    'L9, S7: a call that failed at request %i resumes with the same requests',
    async (at) => {
      const durable = journalIn(inProcessCalls());
      const answers = [[toolCall('look')], [toolCall('hear')], [toolCall('look')], [text('Well.')]];
      const plain = scriptedModel(...answers);
      const agentOf = (model: ScriptedModel) =>
        createAgent({ name: 'me', model, tools: [look, hear], use: [durable] });
      await createAgent({ name: 'me', model: plain, tools: [look, hear] }).call(list, {
        callId: 'c',
      });
      const broken = scriptedModel(
        ...answers.slice(0, at),
        throwError(() => new Error('down')),
      );
      await agentOf(broken)
        .call(list, { callId: 'c' })
        .catch(() => undefined);
      const rest = scriptedModel(...answers.slice(at));
      const reply = await lastValueFrom(durable.resume$(agentOf(rest), 'c'));
      expect(reply.text).toBe('Well.');
      expect(rest.requests).toEqual(plain.requests.slice(at));
    },
  );

  it('L9, S7: its list of calls shows the question, and a fork changes it', async () => {
    const store = createCallStore(inProcessCalls());
    const durable = journal(store);
    const model = scriptedModel([text('Well.')], [text('Otherwise.')]);
    const agent = createAgent({ name: 'me', model, use: [durable] });
    await agent.call([user('1'), assistant('2', 'other'), user('3')], { callId: 'c' });
    expect(await all(calls$(store))).toMatchObject([{ question: '3' }]);
    const fork = await lastValueFrom(
      fork$(store, 'c', { at: 'open', edit: { call: otherQuestion('Four') } }),
    );
    await lastValueFrom(durable.resume$(agent, fork));
    expect(textsOf(model, 1)).toEqual(['1', '2', 'Four']);
  });

  it.each(['open', '1'])('L9, S7: a fork at %s into a session has the list once', async (at) => {
    const store = createCallStore(inProcessCalls());
    const durable = journal(store);
    const model = scriptedModel([text('Well.')], [text('Otherwise.')], [text('More.')]);
    const agent = createAgent({ name: 'me', model, use: [durable] });
    await agent.call([user('1'), assistant('2'), user('3')], { callId: 'c' });
    const fork = await lastValueFrom(fork$(store, 'c', { at, sessionId: 's' }));
    const session = sessions(agent).open('s');
    await lastValueFrom(durable.resume$(session, fork));
    expect(textsOf(model, 1)).toEqual(['1', '2', '3']);
    await session.call('4');
    expect(textsOf(model, 2)).toEqual(['1', '2', '3', 'Otherwise.', '4']);
  });
});

describe('a list of messages as input of a team', () => {
  const list = [user('1'), assistant('2'), user('3')];

  it('L9, G5: members get the question with the history before it', async () => {
    const first = scriptedModel([text('a')]);
    const second = scriptedModel([text('b')]);
    const inputs: unknown[] = [];
    const step = createStep((input) => {
      inputs.push(input);
      return of('x');
    });
    const pair = sequential(
      createAgent({ name: 'a', model: first }),
      createAgent({ name: 'b', model: second }),
    );
    await asAgent(pair, { name: 'team' }).call(list);
    await asAgent(step, { name: 'team' }).call(list);
    expect(textsOf(first)).toEqual(['1', '2', '3']);
    expect(textsOf(second)).toEqual(['1', '2', 'a']);
    expect(inputs).toEqual(['3']);
  });

  it('L9, G5: a handoff and a hub pass on the whole conversation once', async () => {
    const front = scriptedModel([text('Hm.'), toolCall('transfer_to_back')]);
    const back = scriptedModel([text('Well.')]);
    const agents = [
      { agent: createAgent({ name: 'front', model: front }), description: 'Fronts.' },
      { agent: createAgent({ name: 'back', model: back }), description: 'Backs.' },
    ];
    await handoff({ agents }).call(list);
    expect(textsOf(front)).toEqual(['1', '2', '3']);
    expect(textsOf(back)).toEqual(['1', '2', '3', 'Hm.', 'I am handing over to back.']);
    const last = scriptedModel([text('Well.')]);
    const moves = scriptedModel([toolCall('transfer_to_back')]);
    await handoff({
      agents: [
        { agent: createAgent({ name: 'front', model: moves }), description: 'Fronts.' },
        { agent: createAgent({ name: 'back', model: last }), description: 'Backs.' },
      ],
      filter: carryLast,
    }).call([user('1'), assistant('2'), user('A report.'), 'Sum it up.']);
    expect(textsOf(last)?.slice(0, 2)).toEqual(['A report.', 'Sum it up.']);
    const one = scriptedModel([text('one')], [text('three')]);
    const two = scriptedModel([text('two')], [text('four')]);
    const talk = hub({
      agents: [createAgent({ name: 'a', model: one }), createAgent({ name: 'b', model: two })],
      rounds: 2,
    });
    await asAgent(talk, { name: 'talk' }).call(list);
    expect(textsOf(two)).toEqual(['1', '2', '3', 'one']);
    expect(textsOf(one, 1)).toEqual(['1', '2', '3', 'one', 'two']);
  });

  it('L9, G5: an agent that hands back and forth says each word once', async () => {
    const ann = scriptedModel(
      [text('Ann 1.'), toolCall('transfer_to_bob')],
      [text('Ann 2.'), toolCall('transfer_to_bob')],
    );
    const bob = scriptedModel([text('Bob 1.'), toolCall('transfer_to_ann')], [text('Bob 2.')]);
    const agents = [
      { agent: createAgent({ name: 'ann', model: ann }), description: 'Is Ann.' },
      { agent: createAgent({ name: 'bob', model: bob }), description: 'Is Bob.' },
    ];
    await handoff({ agents }).call(list);
    const words = textsOf(bob, 1) ?? [];
    expect(words.filter((it) => it === 'Ann 1.')).toHaveLength(1);
    expect(words.filter((it) => it === 'Bob 1.')).toHaveLength(1);
  });
});
