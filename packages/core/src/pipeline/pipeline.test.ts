import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concatMap,
  delay,
  EMPTY,
  finalize,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  throwError,
  timer,
} from 'rxjs';
import {
  type Agent,
  createAgent,
  inProcessMemory,
  stepJournal,
  type MillraceError,
  only,
  prepare,
  suspend,
  textBlock,
  textOf,
  tool,
  toolResults,
} from '../index.js';
import { guardInput } from '../guards/index.js';
import { fitContext } from '../fitting/index.js';
import type { RetrievedPassage, Retriever } from '../retrieval/index.js';
import { marbles, record, scriptedModel, text, toolUse, verifyEvents } from '../testing/index.js';
import { createSemaphore, limitConcurrency, limitRate } from '../traffic/index.js';
import {
  addSources,
  answerWith,
  type CallStage,
  completeCall,
  hideTools,
  insertStageAfter,
  insertStageBefore,
  limitCalls,
  loadHistory,
  nativePipeline,
  prepareCall,
  recall,
  replaceStage,
  retrieve,
  type RetrieveOptions,
  reviewReply,
  runLoop,
  saveHistory,
  selectTools,
  withHistory,
  withoutStage,
} from './index.js';

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
const retrieving = (retriever: Retriever, options?: RetrieveOptions) =>
  insertStageAfter(loadHistory, retrieve(retriever, options));
const systemOf = (model: ReturnType<typeof scriptedModel>, at = 0) => model.requests[at]?.system;

describe('the pipeline', () => {
  it('C1: is guards and preparation, history, tools, the loop, the reply, memory, the end', () => {
    expect(nativePipeline.map(({ name }) => name)).toEqual([
      'prepareCall',
      'loadHistory',
      'selectTools',
      'runLoop',
      'reviewReply',
      'saveHistory',
      'completeCall',
    ]);
  });

  it('C1: takes stages in any place, and shows each what came before', async () => {
    const seen: string[] = [];
    const spy = (name: string): CallStage => {
      const stage: CallStage = () =>
        map((state) => {
          const { history, run, reply } = state;
          seen.push(`${name}: ${history.length} ${run?.status} ${reply?.reason}`);
          return state;
        });
      return stage;
    };
    const pipeline = [
      spy('a'),
      prepareCall,
      loadHistory,
      spy('b'),
      selectTools,
      runLoop,
      spy('c'),
      reviewReply,
      saveHistory,
      spy('d'),
      completeCall,
      spy('e'),
    ];
    const agent = createAgent({ model: scriptedModel([text('1')], [text('2')]), pipeline });
    const session = agent.session('s');
    await session.call('?');
    seen.length = 0;
    await lastValueFrom(session.stream$('?').pipe(verifyEvents()));
    expect(seen).toEqual([
      'a: 0 undefined undefined',
      'b: 2 undefined undefined',
      'c: 2 answer undefined',
      'd: 2 answer answer',
      'e: 2 answer answer',
    ]);
  });

  it('C1: a stage can change what is shown, hide tools, or answer without a model', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });
    const changed: CallStage = ({ call }) =>
      map((state) =>
        hideTools(
          recall(withHistory(state, []), {
            id: `${call.callId}/recalled`,
            role: 'user',
            content: [textBlock('You like mills.')],
          }),
          'look',
        ),
      );
    const model = scriptedModel([text('1')], [text('2')]);
    const memory = inProcessMemory();
    const pipeline = insertStageAfter(loadHistory, changed);
    const session = createAgent({ model, tools: [look], memory, pipeline }).session('s');
    await session.call('first');
    await session.call('second');
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['You like mills.', 'second']);
    expect(model.requests[1]?.tools ?? []).toEqual([]);
    expect((await lastValueFrom(memory('s').load$())).map(textOf)).toEqual([
      'first',
      '1',
      'second',
      '2',
    ]);

    const cached: CallStage = () => map((state) => answerWith(state, 'As ever.'));
    const silent = scriptedModel();
    const cachedAgent = createAgent({
      model: silent,
      memory,
      pipeline: insertStageAfter(loadHistory, cached),
    });
    const events = await record(cachedAgent.session('t').stream$('?').pipe(verifyEvents()));
    expect(events.map(({ type }) => type)).toEqual(['preCall', 'messagesAppended', 'postCall']);
    expect(events.at(-1)).toMatchObject({ reply: { reason: 'answer', iterations: 0 } });
    expect((await lastValueFrom(memory('t').load$())).map(textOf)).toEqual(['?', 'As ever.']);
  });

  it.each([
    ['none', () => concatMap(() => EMPTY), /the stage 'odd' made none/],
    ['another thing', () => map(() => 3), /made something else/],
  ])('C1: refuses a stage that makes %s of a call', async (_, create, message) => {
    const odd = create as unknown as CallStage;
    const named: CallStage = Object.defineProperty(odd, 'name', { value: 'odd' });
    const agent = createAgent({
      model: scriptedModel([text('1')]),
      pipeline: insertStageBefore(completeCall, named),
    });
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringMatching(message),
    });
  });

  it('C1: a stage that fails fails the call, and one that is missing is named', async () => {
    const failing: CallStage = () => concatMap(() => throwError(() => new Error('no')));
    const call = (pipeline: readonly CallStage[]) =>
      createAgent({ model: scriptedModel([text('1')]), pipeline }).call('?');
    await expect(call(insertStageBefore(runLoop, failing))).rejects.toMatchObject({
      code: 'unknown',
      message: "In the stage 'failing': no",
    });
    await expect(call(withoutStage(runLoop))).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining("needs 'runLoop'"),
    });
    await expect(call(withoutStage(completeCall))).rejects.toMatchObject({
      message: expect.stringContaining("needs 'completeCall'"),
    });
    await expect(call(withoutStage(reviewReply))).rejects.toMatchObject({
      message: expect.stringContaining("needs 'reviewReply'"),
    });
    expect(() => replaceStage(retrieve(finding()), runLoop)).toThrow(
      /replaceStage\(\): the list has no such stage. It has: prepareCall, /,
    );
    expect(() => createAgent({ model: scriptedModel(), pipeline: [3] as never })).toThrow(
      /'pipeline' takes a list of stages/,
    );
  });

  it('R3: what a stage answers is read as output', async () => {
    const answering = (answer: string): readonly CallStage[] => {
      const known: CallStage = () => map((state) => answerWith(state, answer));
      return insertStageAfter(loadHistory, known);
    };
    const output = { type: 'object', properties: { a: { type: 'number' } } } as const;
    const call = (answer: string) =>
      createAgent({ model: scriptedModel(), pipeline: answering(answer) }).call('?', { output });
    expect((await call('{"a": 1}')).output).toEqual({ a: 1 });
    await expect(call('{"a": "b"}')).rejects.toMatchObject({ code: 'invalidResponse' });
    const session = createAgent({ model: scriptedModel(), pipeline: answering('So.') }).session(
      's',
    );
    await session.call('?');
    await session.call('?');
    expect(await lastValueFrom(session.memory.load$())).toHaveLength(4);
  });

  it('S1: an interrupt passes over a stage that hangs', () => {
    marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
      const never = cold<never>('-');
      const slow: CallStage = () => concatMap(() => never);
      const agent = createAgent({
        model: scriptedModel(),
        pipeline: insertStageBefore(runLoop, slow),
      });
      const reason$ = agent
        .call$('?', { scheduler, interruptOn: cold('--i', { i: {} }) })
        .pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('--(r|)', { r: 'interrupted' });
      expectSubscriptions(never.subscriptions).toBe('^-!');
    });
  });

  it('S1: an interrupt passes over no stage behind the loop', () => {
    marbles(({ scheduler, cold, expectObservable }) => {
      const seen: string[] = [];
      const audit: CallStage = () =>
        concatMap((state) =>
          timer(5, scheduler).pipe(
            map(() => {
              seen.push(state.reply?.reason ?? '');
              return state;
            }),
          ),
        );
      const agent = createAgent({
        model: { name: 'm', stream$: () => NEVER },
        pipeline: insertStageAfter(reviewReply, audit),
      });
      const reason$ = agent
        .call$('?', { scheduler, interruptOn: cold('--i', { i: {} }) })
        .pipe(map(({ reason }) => `${reason} ${seen.join()}`));
      expectObservable(reason$).toBe('7ms (r|)', { r: 'interrupted interrupted' });
    });
  });

  it('C1: what a guard could not decide in time is not answered by a stage', () => {
    marbles(({ scheduler, cold, expectObservable }) => {
      const known: CallStage = () => map((state) => answerWith(state, 'SECRET'));
      const slow = guardInput(() => timer(500, scheduler).pipe(map(() => false)));
      const agent = createAgent({
        model: scriptedModel(),
        interceptors: [slow],
        pipeline: insertStageAfter(loadHistory, known),
      });
      const text$ = agent
        .call$('?', { scheduler, interruptOn: cold('--i', { i: {} }) })
        .pipe(map((reply) => `${reply.reason} ${textOf(reply).includes('SECRET')}`));
      expectObservable(text$).toBe('--(r|)', { r: 'interrupted false' });
    });
  });

  it('I5: leaving a call leaves the stage that it waits for', () => {
    marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
      const never = cold<never>('-');
      const slow: CallStage = () => concatMap(() => never);
      const agent = createAgent({
        model: scriptedModel(),
        pipeline: insertStageBefore(runLoop, slow),
      });
      expectObservable(agent.call$('?', { scheduler }), '---!').toBe('-');
      expectSubscriptions(never.subscriptions).toBe('^--!');
    });
  });
});

describe('retrieve', () => {
  it('R2, I8: shows passages with numbers in the system prompt, and stores none', async () => {
    const model = scriptedModel([text('It carries water [1].')]);
    const memory = inProcessMemory();
    const retriever = finding();
    const agent = createAgent({
      model,
      memory,
      instructions: 'Be kind.',
      pipeline: retrieving(retriever),
    });
    const events = await record(agent.session('s').stream$('What is a mill race?'));
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
    const model = scriptedModel([text('1')], [toolUse('look')], [text('2')]);
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });
    const pipeline = retrieving(finding(), { placement: 'beforeInput', limit: 1 });
    const session = createAgent({ model, tools: [look], pipeline }).session('s');
    await session.call('first');
    await session.call('second');
    expect(systemOf(model, 2)).toBeUndefined();
    const [, , context, asked, use, result] = model.requests[2]?.messages ?? [];
    expect(textOf(context ?? { content: [] })).toMatch(/^\[Retrieved Context\]\n.*mills\.md/s);
    expect(textOf(context ?? { content: [] })).not.toContain('wheels.md');
    expect(textOf(asked ?? { content: [] })).toBe('second');
    expect([use?.role, result?.role]).toEqual(['assistant', 'tool']);
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
  ])('C1: one that %s is a warning, and the call goes on', async (_, retrieve$) => {
    const model = scriptedModel([text('Well.')]);
    const agent = createAgent({ model, pipeline: retrieving({ retrieve$ }) });
    const events = await record(agent.stream$('?'));
    expect(events.find(({ type }) => type === 'warning')).toMatchObject({
      message: expect.stringMatching(/^Nothing could be retrieved, so the call goes on without: /),
    });
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
    expect(systemOf(model)).toBeUndefined();
  });

  it('X18: an interrupt leaves a retriever that does not answer', () => {
    marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
      const never = cold<never>('-');
      const agent = createAgent({
        model: scriptedModel(),
        pipeline: retrieving({ retrieve$: () => never }),
      });
      const options = { scheduler, interruptOn: cold('--i', { i: {} }) };
      const reason$ = agent.call$('?', options).pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('--(r|)', { r: 'interrupted' });
      expectSubscriptions(never.subscriptions).toBe('^-!');
    });
  });

  it('S6: is a step of the journal', async () => {
    const known = new Map<string, unknown>();
    const ids: string[] = [];
    const journal = stepJournal((id, work) => {
      ids.push(id);
      if (known.has(id)) return of(known.get(id));
      return work().pipe(map((value) => (known.set(id, value), value)));
    });
    const retriever = finding();
    const agent = createAgent({
      model: scriptedModel([text('1')]),
      journal,
      pipeline: retrieving(retriever),
    });
    await agent.call('?', { callId: 'c' });
    await agent.resume('c');
    expect(ids.slice(0, 4)).toEqual(['c/call', 'c/open', 'c/retrieve', 'c/1']);
    expect(retriever.asked).toHaveLength(1);
  });

  it('C1: several are steps of their own', async () => {
    const ids: string[] = [];
    const journal = stepJournal((id, work) => {
      ids.push(id);
      return work();
    });
    const second = finding([{ source: 'c.md', text: 'c' }]);
    const pipeline = insertStageBefore(selectTools, retrieve(second), retrieving(finding()));
    const agent = createAgent({ model: scriptedModel([text('1')]), journal, pipeline });
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
    const events = await record(
      createAgent({ model, pipeline: retrieving(retriever) }).stream$('?'),
    );
    expect(events.some(({ type }) => type === 'warning')).toBe(true);
    expect(systemOf(model)).toBeUndefined();
  });

  it('C1: may think about what it looks for', async () => {
    const retriever = finding();
    const query = () => timer(0).pipe(map(() => 'mills'));
    const agent = createAgent({
      model: scriptedModel([text('1')]),
      pipeline: retrieving(retriever, { query }),
    });
    await agent.call('And those?');
    expect(retriever.asked).toEqual([{ query: 'mills', limit: 5 }]);
  });

  it('R1: in a resumed call it stands before what was asked', async () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => suspend('?') });
    const model = scriptedModel([toolUse('pay')], [text('Paid.')]);
    const pipeline = retrieving(finding(), { placement: 'beforeInput' });
    const session = createAgent({ model, tools: [pay], pipeline }).session('s');
    const reply = await session.call('Pay.');
    await session.call(toolResults({ [reply.suspensions?.[0]?.toolUse.id ?? '']: 'Yes.' }));
    expect(model.requests[1]?.messages.map((it) => textOf(it).slice(0, 10))).toEqual([
      '[Retrieved',
      'Pay.',
      '',
      '',
    ]);
  });

  it('I15: what was found stays, where history has to go', async () => {
    const model = scriptedModel([text('1')], [text('2')]);
    const session = createAgent({
      model,
      interceptors: [fitContext({ contextWindow: 500, reserve: 100 })],
      pipeline: retrieving(finding(), { placement: 'beforeInput' }),
    }).session('s');
    await session.call('old '.repeat(300));
    await session.call('new');
    const shown = model.requests[1]?.messages.map(textOf) ?? [];
    expect(shown).toHaveLength(2);
    expect(shown[0]).toContain('mills.md');
    expect(shown[1]).toContain('new');
  });

  it('C1: looks for nothing where nothing is asked, or the call is not to run', async () => {
    const retriever = finding();
    const quiet = createAgent({
      model: scriptedModel([text('1')]),
      pipeline: retrieving(retriever, { query: () => ' ' }),
    });
    await quiet.call('?');
    const vetoed = createAgent({
      model: scriptedModel(),
      interceptors: [prepare(concatMap(() => EMPTY))],
      pipeline: retrieving(retriever),
    });
    expect((await vetoed.call('?')).reason).toBe('stopped');
    expect(retriever.asked).toEqual([]);
    expect(() => retrieve({} as never)).toThrow(/takes a Retriever/);
    expect(() => retrieve(retriever, { limit: 0 })).toThrow(/'limit' must be/);
  });

  it('C1: several add to each other, and are numbered through', async () => {
    const model = scriptedModel([text('1')]);
    const more: CallStage = () =>
      map((state) => addSources(state, [{ source: 'c.md', text: 'c' }]));
    const pipeline = insertStageBefore(selectTools, more, retrieving(finding()));
    const reply = await createAgent({ model, pipeline }).call('?');
    expect(systemOf(model)).toContain('[3] c.md');
    expect(reply.sources?.map(({ source }) => source)).toEqual(['mills.md', 'wheels.md', 'c.md']);
  });
});

describe('limitCalls', () => {
  it('C6: no more calls than that at once, in turn, and the wait counts', () => {
    marbles(({ scheduler, expectObservable }) => {
      const semaphore = createSemaphore({ max: 2 });
      const slow = {
        name: 'm',
        stream$: () =>
          from([text('1'), { type: 'finish', finish: 'stop' } as const]).pipe(delay(10, scheduler)),
      };
      const pipeline = insertStageBefore(prepareCall, limitCalls(semaphore));
      const agent = createAgent({ model: slow, pipeline });
      let most = 0;
      const call$ = (timeoutMs?: number) =>
        agent
          .stream$('?', { scheduler, ...(timeoutMs && { timeouts: { callMs: timeoutMs } }) })
          .pipe(
            only('preReasoning'),
            map(() => (most = Math.max(most, semaphore.held))),
          );
      expectObservable(call$()).toBe('a 9ms |', { a: 1 });
      expectObservable(call$()).toBe('a 9ms |', { a: 2 });
      expectObservable(call$()).toBe('10ms a 9ms |', { a: 2 });
      const code$ = call$(5).pipe(
        catchError((error: unknown) => of((error as MillraceError).code)),
      );
      expectObservable(code$).toBe('5ms (t|)', { t: 'timeout' });
      expectObservable(timer(30, scheduler).pipe(map(() => semaphore.held))).toBe('30ms (h|)', {
        h: 0,
      });
    });
  });

  it('C6, G4: a sub-agent shares the place of its parent; one that leaves frees it', async () => {
    const semaphore = createSemaphore({ max: 1 });
    const pipeline = insertStageBefore(prepareCall, limitCalls(semaphore));
    const child = createAgent({ name: 'child', model: scriptedModel([text('inner')]), pipeline });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, context) => child.call$('?', { parent: context }).pipe(map(textOf)),
    });
    const parent = createAgent({
      model: scriptedModel([toolUse('ask')], [text('outer')]),
      tools: [ask],
      pipeline,
    });
    expect(textOf(await parent.call('?'))).toBe('outer');
    expect(semaphore.held).toBe(0);
    const stuck = createAgent({ model: { name: 'm', stream$: () => NEVER }, pipeline });
    const left = stuck
      .call$('?')
      .pipe(finalize(() => undefined))
      .subscribe({ error: () => undefined });
    expect(semaphore.held).toBe(1);
    left.unsubscribe();
    expect(semaphore.held).toBe(0);
  });

  it('C6: whoever waits is told so: calls, and requests to models', async () => {
    const semaphore = createSemaphore({ max: 1 });
    const limited = limitConcurrency(1);
    const rated = limitRate({ requestsPerMinute: 1 });
    const stuck = { name: 'm', stream$: () => NEVER };
    const queuedIn = (agent: Agent) => firstValueFrom(agent.stream$('?').pipe(only('queued')));
    const pipeline = insertStageBefore(prepareCall, limitCalls(semaphore));
    const agents = [
      createAgent({ model: stuck, pipeline }),
      createAgent({ model: limited(stuck) }),
      createAgent({ model: rated(stuck) }),
    ];
    const held = agents.map((agent) => agent.call$('?').subscribe({ error: () => undefined }));
    expect(await Promise.all(agents.map(queuedIn))).toMatchObject([
      { why: 'calls', ahead: 0, iteration: 0 },
      { why: 'concurrency', ahead: 0, iteration: 1 },
      { why: 'rate', ahead: 0, iteration: 1 },
    ]);
    held.forEach((call) => call.unsubscribe());
    expect([semaphore.held, semaphore.waiting, limited.semaphore.waiting]).toEqual([0, 0, 0]);
  });

  it('C6: an interrupt ends a call that waits', () => {
    marbles(({ scheduler, cold, expectObservable }) => {
      const semaphore = createSemaphore({ max: 1 });
      const pipeline = insertStageBefore(prepareCall, limitCalls(semaphore));
      const stuck = createAgent({ model: { name: 'm', stream$: () => NEVER }, pipeline });
      const holder = stuck.call$('?', { scheduler });
      expectObservable(holder, '9ms !').toBe('-');
      const waiting$ = stuck
        .call$('?', { scheduler, interruptOn: cold('---i', { i: {} }) })
        .pipe(map(({ reason }) => reason));
      expectObservable(waiting$).toBe('---(r|)', { r: 'interrupted' });
      expectObservable(timer(4, scheduler).pipe(map(() => semaphore.waiting)), '9ms !').toBe(
        '----(w|)',
        { w: 0 },
      );
    });
  });
});
