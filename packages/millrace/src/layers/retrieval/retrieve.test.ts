import { describe, expect, it } from '@jest/globals';
import {
  concatMap,
  EMPTY,
  from,
  lastValueFrom,
  map,
  type Observable,
  of,
  throwError,
  timer,
} from 'rxjs';
import { answerWith } from '../../call/index.js';
import { fitContext } from '../fitting/index.js';
import {
  createAgent,
  inProcessMemory,
  interruptOn,
  type Layer,
  prepare,
  suspend,
  textOf,
  tool,
  toolResults,
} from '../../index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../../testing/index.js';
import { addSources, retrieve, type RetrievedPassage, type Retriever } from './index.js';
import { sessions } from '../sessions/index.js';
import { journal } from '../../journal/index.js';

const passages: readonly RetrievedPassage[] = [
  { source: 'mills.md', text: 'A mill race carries water.', title: 'Mills' },
  { source: 'wheels.md', text: 'Wheels turn.' },
];
const finding = (
  found: readonly RetrievedPassage[] = passages,
): Retriever & { asked: unknown[] } => {
  const asked: unknown[] = [];
  return {
    asked,
    retrieve$: ({ text: query, limit }) => {
      asked.push({ query, limit });
      return of(found);
    },
  };
};
const systemOf = (model: ReturnType<typeof scriptedModel>, at = 0) => model.requests[at]?.system;

describe('retrieve', () => {
  it('R2, I8: shows passages with numbers in the system prompt, and stores none', async () => {
    const model = scriptedModel([text('It carries water [1].')]);
    const memory = inProcessMemory();
    const retriever = finding();
    const agent = createAgent({
      model,
      instructions: 'Be kind.',
      use: [retrieve(retriever)],
    });
    const events = await record(
      sessions(agent, { memory }).open('s').stream$('What is a mill race?'),
    );
    expect(retriever.asked).toEqual([{ query: 'What is a mill race?', limit: 5 }]);
    expect(systemOf(model)).toMatch(
      /^Be kind\.\n\n\[Retrieved Context\]\n.*\[1\] mills\.md, Mills\n> A mill race/s,
    );
    expect(model.requests[0]?.messages).toHaveLength(1);
    expect(events.find(({ type }) => type === 'retrieved')).toMatchObject({ passages });
    expect(events.at(-1)).toMatchObject({ reply: { sources: passages } });
    expect(await lastValueFrom(memory('s').load$())).toHaveLength(2);
  });

  it('R1: right before what was asked, so that all before it is the same each time', async () => {
    const model = scriptedModel([text('1')], [toolCall('look')], [text('2')]);
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });
    const use = [retrieve(finding(), { placement: 'beforeInput', limit: 1 })];
    const session = sessions(createAgent({ model, tools: [look], use })).open('s');
    await session.call('first');
    await session.call('second');
    expect(systemOf(model, 2)).toBeUndefined();
    const [, , context, asked, looked, result] = model.requests[2]?.messages ?? [];
    expect(textOf(context ?? { content: [] })).toMatch(/^\[Retrieved Context\]\n.*mills\.md/s);
    expect(textOf(context ?? { content: [] })).not.toContain('wheels.md');
    expect(textOf(asked ?? { content: [] })).toBe('second');
    expect([looked?.role, result?.role]).toEqual(['assistant', 'tool']);
  });

  it.each([
    ['errors', (): Observable<never> => throwError(() => new Error('down'))],
    [
      'throws',
      () => {
        throw new Error('down');
      },
    ],
    [
      'gives something else',
      () => from<readonly (readonly RetrievedPassage[])[]>(['down' as never]),
    ],
  ])('C1: one that %s is a warning, and the call continues', async (_, retrieve$) => {
    const model = scriptedModel([text('Well.')]);
    const agent = createAgent({ model, use: [retrieve({ retrieve$ })] });
    const events = await record(agent.stream$('?'));
    expect(events.find(({ type }) => type === 'warning')).toMatchObject({
      message: expect.stringMatching(/^Retrieval failed, so the call continues without passages: /),
    });
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
    expect(systemOf(model)).toBeUndefined();
  });

  it('X18: an interrupt leaves a retriever that does not answer', () => {
    marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
      const never = cold<never>('-');
      const agent = createAgent({
        model: scriptedModel(),
        use: [retrieve({ retrieve$: () => never })],
      });
      const options = { scheduler, use: [interruptOn(cold('--i', { i: {} }))] };
      const reason$ = agent.call$('?', options).pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('--(r|)', { r: 'interrupted' });
      expectSubscriptions(never.subscriptions).toBe('^-!');
    });
  });

  it('S6: is a step of the journal', async () => {
    const known = new Map<string, unknown>();
    const ids: string[] = [];
    const durable = journal((id, work) => {
      ids.push(id);
      if (known.has(id)) return of(known.get(id));
      return work().pipe(map((value) => (known.set(id, value), value)));
    });
    const retriever = finding();
    const agent = createAgent({
      model: scriptedModel([text('1')]),
      use: [retrieve(retriever), durable],
    });
    await agent.call('?', { callId: 'c' });
    await durable.resume(agent, 'c');
    expect(ids.slice(0, 4)).toEqual(['c/call', 'c/open', 'c/retrieve', 'c/1']);
    expect(retriever.asked).toHaveLength(1);
  });

  it('C1: several are steps of their own', async () => {
    const ids: string[] = [];
    const durable = journal((id, work) => {
      ids.push(id);
      return work();
    });
    const second = finding([{ source: 'c.md', text: 'c' }]);
    const use = [durable, retrieve(finding()), retrieve(second)];
    const agent = createAgent({ model: scriptedModel([text('1')]), use });
    const reply = await agent.call('?', { callId: 'c' });
    expect(ids.slice(1, 4)).toEqual(['c/open', 'c/retrieve', 'c/retrieve/2']);
    expect(reply.sources?.map(({ source }) => source)).toEqual(['mills.md', 'wheels.md', 'c.md']);
  });

  it.each([
    ['title', { title: null }],
    ['line', { span: { from: 0, to: 1, line: '1\n\n[Response Format]' } }],
  ])('C1, X15: a passage with an odd %s is a warning, and never shown', async (_, odd) => {
    const retriever = finding([{ source: 'a.md', text: 'a', ...odd } as never]);
    const model = scriptedModel([text('Well.')]);
    const events = await record(createAgent({ model, use: [retrieve(retriever)] }).stream$('?'));
    expect(events.some(({ type }) => type === 'warning')).toBe(true);
    expect(systemOf(model)).toBeUndefined();
  });

  it('C1: may think about what it looks for', async () => {
    const retriever = finding();
    const query = () => timer(0).pipe(map(() => 'mills'));
    const agent = createAgent({
      model: scriptedModel([text('1')]),
      use: [retrieve(retriever, { query })],
    });
    await agent.call('And those?');
    expect(retriever.asked).toEqual([{ query: 'mills', limit: 5 }]);
  });

  it('R1: in a resumed call it stands before what was asked', async () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => suspend('?') });
    const model = scriptedModel([toolCall('pay')], [text('Paid.')]);
    const use = [retrieve(finding(), { placement: 'beforeInput' })];
    const session = sessions(createAgent({ model, tools: [pay], use })).open('s');
    const reply = await session.call('Pay.');
    await session.call(toolResults({ [reply.suspensions?.[0]?.toolCall.id ?? '']: 'Yes.' }));
    expect(model.requests[1]?.messages.map((it) => textOf(it).slice(0, 10))).toEqual([
      '[Retrieved',
      'Pay.',
      '',
      '',
    ]);
  });

  it('I15: what was found stays, where history has to go', async () => {
    const model = scriptedModel([text('1')], [text('2')]);
    const session = sessions(
      createAgent({
        model,
        use: [
          fitContext({ contextWindow: 500, reserve: 100 }),
          retrieve(finding(), { placement: 'beforeInput' }),
        ],
      }),
    ).open('s');
    await session.call('old '.repeat(300));
    await session.call('new');
    const shown = model.requests[1]?.messages.map(textOf) ?? [];
    expect(shown).toHaveLength(2);
    expect(shown[0]).toContain('mills.md');
    expect(shown[1]).toContain('new');
  });

  it('C1: looks for nothing if nothing is asked, or the call is not to run', async () => {
    const retriever = finding();
    const quiet = createAgent({
      model: scriptedModel([text('1')]),
      use: [retrieve(retriever, { query: () => ' ' })],
    });
    await quiet.call('?');
    const vetoed = createAgent({
      model: scriptedModel(),
      use: [prepare(concatMap(() => EMPTY)), retrieve(retriever)],
    });
    expect((await vetoed.call('?')).reason).toBe('stopped');
    expect(retriever.asked).toEqual([]);
    expect(() => retrieve({} as never)).toThrow(/takes a Retriever/);
    expect(() => retrieve(retriever, { limit: 0 })).toThrow(/'limit' must be/);
  });

  it('C1: several add to each other, and are numbered through', async () => {
    const model = scriptedModel([text('1')]);
    const more: Layer = {
      name: 'more',
      call: () => (next) => (call) => next(addSources(call, [{ source: 'c.md', text: 'c' }])),
    };
    const reply = await createAgent({ model, use: [more, retrieve(finding())] }).call('?');
    expect(systemOf(model)).toContain('[3] c.md');
    expect(reply.sources?.map(({ source }) => source)).toEqual(['mills.md', 'wheels.md', 'c.md']);
  });

  it('C1: a layer that answers itself has what was found reported, and in its reply', async () => {
    const cached: Layer = {
      name: 'cached',
      call: (context) => () => (call) => answerWith(context, call, 'It carries water [1].'),
    };
    const agent = createAgent({ model: scriptedModel(), use: [retrieve(finding()), cached] });
    const events = await record(agent.stream$('?'));
    expect(events.map(({ type }) => type)).toEqual(['preCall', 'retrieved', 'postCall']);
    expect(events.at(-1)).toMatchObject({ reply: { sources: passages } });
  });
});
