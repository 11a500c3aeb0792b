import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concatMap,
  lastValueFrom,
  map,
  NEVER,
  Observable,
  of,
  type OperatorFunction,
  range,
  Subject,
  tap,
  throwError,
} from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  interruptOn,
  isMillraceError,
  type ModelChunk,
  on,
  only,
  type Reply,
  textOf,
  tool,
} from '../index.js';
import { finish, marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

const summary = ({ reason, ...reply }: Reply) => `${reason}: ${textOf(reply)}`;
/** The code of the error that a call ends with. */
const codes: OperatorFunction<Reply, string> = (reply$) =>
  reply$.pipe(
    map(summary),
    catchError((error: unknown) => of(isMillraceError(error) ? error.code : String(error))),
  );
const deaf = tool({ name: 'deaf', description: 'Never settles.', run: () => NEVER });
const quick = tool({ name: 'quick', description: 'Settles.', run: () => 'ok' });

describe('an interrupt', () => {
  it('I6: takes effect before the first step', async () => {
    const model = scriptedModel();
    const memory = inProcessMemory();
    const session = sessions(createAgent({ model }), { memory }).open('s');
    const reply = await session.call('?', { use: [interruptOn(of('Not now.'))] });
    expect(summary(reply)).toBe('interrupted: Not now.');
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map((message) => textOf(message))).toEqual(['?', 'Not now.']);
  });

  it.each<[string, unknown, string]>([
    ['an object with a message', { message: 'Not now.' }, 'Not now.'],
    ['a message', { role: 'assistant', content: [text('Not now.')] }, 'Not now.'],
    ['a message in an object', { message: { role: 'user', content: [text('Go.')] } }, 'Go.'],
    ['an error, which is only a signal', new Error('secret'), 'Interrupted.'],
    ['an object without a message', { type: 'click' }, 'Interrupted.'],
  ])('S1: replies with what it is given: %s', async (_, signal, said) => {
    const agent = createAgent({ model: scriptedModel() });
    const reply = await agent.call('?', { use: [interruptOn(of(signal as never))] });
    expect([reply.reason, textOf(reply)]).toEqual(['interrupted', said]);
  });

  it('S1: while the model streams, stops listening immediately and replies with the partial text', () => {
    marbles(({ model, cold, expectObservable, expectSubscriptions, scheduler }) => {
      const scripted = model('-t-t------(f|)');
      const agent = createAgent({ model: scripted });
      const reply$ = agent.call$('?', { use: [interruptOn(cold('-----x', { x: 0 }))], scheduler });
      expectObservable(reply$.pipe(map(summary))).toBe('-----(r|)', { r: 'interrupted: tt' });
      for (const log of scripted.subscriptions) expectSubscriptions(log).toBe('^----!');
    });
  });

  it('S1: a frozen stream does not delay it; without text there is a word', () => {
    marbles(({ model, cold, expectObservable, scheduler }) => {
      const agent = createAgent({ model: model('-') });
      const reply$ = agent.call$('?', { use: [interruptOn(cold('--x', { x: 0 }))], scheduler });
      expectObservable(reply$.pipe(map(summary))).toBe('--(r|)', {
        r: 'interrupted: Interrupted.',
      });
    });
  });

  it('S1: a message of its own replaces the partial text, which is discarded', async () => {
    const stop$ = new Subject<string>();
    const model = scriptedModel(
      new Observable((subscriber) => {
        subscriber.next(text('Half'));
        stop$.next('Stopped by you.');
      }),
    );
    const events = await record(createAgent({ model }).stream$('?', { use: [interruptOn(stop$)] }));
    expect(events.slice(-2)).toMatchObject([
      { type: 'messageDiscarded', why: 'interrupted' },
      {
        type: 'postCall',
        reply: { reason: 'interrupted', content: [{ text: 'Stopped by you.' }] },
      },
    ]);
  });

  it('S1: a running tool is left, its signal aborted; siblings keep their results', async () => {
    let signal: AbortSignal | undefined;
    const stop$ = new Subject<void>();
    const slow = tool({
      name: 'slow',
      description: 'Ignores its signal.',
      run: (_input, context) => {
        signal = context.signal;
        return NEVER;
      },
    });
    const memory = inProcessMemory();
    const model = scriptedModel([toolCall('quick'), toolCall('slow'), toolCall('deaf')]);
    const stopper = on(
      'preActing',
      tap(({ toolCall: { name } }) => name === 'deaf' && stop$.next()),
    );
    const agent = createAgent({ model, tools: [quick, slow, deaf], use: [stopper] });
    const events = await record(
      sessions(agent, { memory })
        .open('s')
        .stream$('?', { use: [interruptOn(stop$)] }),
    );
    expect(signal?.aborted).toBe(true);
    expect(events.at(-1)).toMatchObject({
      reply: {
        reason: 'interrupted',
        toolCalls: [
          { isError: false, output: 'ok' },
          { isError: true, output: 'Interrupted before it finished.' },
          { isError: true, output: 'Not run: the call was interrupted.' },
        ],
      },
    });
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  it('S1: between two tools, the second is not run', async () => {
    const stop$ = new Subject<void>();
    const model = scriptedModel([toolCall('quick'), toolCall('quick')]);
    const stopper = on(
      'postActing',
      tap(() => stop$.next()),
    );
    const agent = createAgent({ model, tools: [quick], use: [stopper] });
    const reply = await agent.call('?', { use: [interruptOn(stop$)], limits: { parallel: false } });
    expect(reply.toolCalls.map(({ isError }) => isError)).toEqual([false, true]);
    expect(reply.reason).toBe('interrupted');
  });

  it('S1: during the closing call', () => {
    marbles(({ model, cold, expectObservable, scheduler }) => {
      const scripted = model(['(cf|)', '-t-']);
      const agent = createAgent({ model: scripted, tools: [quick] });
      const options = {
        limits: { maxIterations: 1 },
        use: [interruptOn(cold('---x', { x: 0 }))],
        scheduler,
      };
      expectObservable(agent.call$('?', options).pipe(map(summary))).toBe('---(r|)', {
        r: 'interrupted: t',
      });
    });
  });

  it('S1: while an interceptor waits', () => {
    marbles(({ model, cold, expectObservable, scheduler }) => {
      const agent = createAgent({ model: model('t(f|)'), use: [on('preReasoning', () => NEVER)] });
      const reply$ = agent.call$('?', { use: [interruptOn(cold('--x', { x: 0 }))], scheduler });
      expectObservable(reply$.pipe(map(summary))).toBe('--(r|)', {
        r: 'interrupted: Interrupted.',
      });
    });
  });

  it('S1: while an interceptor decides on a tool, which is then not run', () => {
    marbles(({ model, cold, expectObservable, scheduler }) => {
      const agent = createAgent({
        model: model('(cf|)'),
        tools: [tool({ name: 'tool', description: 'Runs.', run: () => 'ran' })],
        use: [on('preActing', () => NEVER)],
      });
      const reply$ = agent.call$('?', { use: [interruptOn(cold('--x', { x: 0 }))], scheduler });
      expectObservable(reply$.pipe(map(({ toolCalls }) => toolCalls[0]?.output))).toBe('--(r|)', {
        r: 'Not run: the call was interrupted.',
      });
    });
  });

  it('S1: the session can continue', async () => {
    const model = scriptedModel([text('a'), finish()]);
    const session = sessions(createAgent({ model })).open('s');
    await session.call('?', { use: [interruptOn(of(0))] });
    expect(summary(await session.call('again'))).toBe('answer: a');
    expect(model.requests[0]?.messages.map((message) => textOf(message))).toEqual([
      '?',
      'Interrupted.',
      'again',
    ]);
  });

  it('S1: session.interrupt is false when nothing runs, and for another call', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const session = sessions(createAgent({ model: model('--t---') })).open('s');
      const results: boolean[] = [session.interrupt()];
      const reply$ = session.stream$('?', { callId: 'c', scheduler }).pipe(
        tap(({ type }) => {
          if (type !== 'reasoningChunk') return;
          results.push(session.interrupt('no', 'other'), session.interrupt('Enough.', 'c'));
        }),
        only('postCall'),
        map(({ reply }) => {
          results.push(session.interrupt());
          return `${summary(reply)} ${results.join()}`;
        }),
      );
      expectObservable(reply$).toBe('--(r|)', {
        r: 'interrupted: Enough. false,false,true,false',
      });
    });
  });

  it('I6: never reaches another session', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const agent = createAgent({ model: model(['--t--(f|)', '--t--(f|)']) });
      const [one, two] = [sessions(agent).open('1'), sessions(agent).open('2')];
      const interrupting$ = one.stream$('?', { scheduler }).pipe(
        tap(({ type }) => type === 'reasoningChunk' && one.interrupt()),
        only('postCall'),
        map(({ reply }) => summary(reply)),
      );
      expectObservable(interrupting$).toBe('--(r|)', { r: 'interrupted: t' });
      expectObservable(two.call$('?', { scheduler }).pipe(map(summary))).toBe('-----(r|)', {
        r: 'answer: t',
      });
    });
  });

  it('I17: an interruptOn that errors is an event, and the call continues', async () => {
    const model = scriptedModel([text('a')]);
    const stop$ = throwError(() => new Error('socket lost'));
    const events = await record(createAgent({ model }).stream$('?', { use: [interruptOn(stop$)] }));
    expect(events.find(({ type }) => type === 'handlerError')).toMatchObject({
      of: 'interruptOn',
    });
    expect(events.at(-1)).toMatchObject({ reply: { reason: 'answer' } });
  });

  it('S1: of an agent interrupts each of its calls, and is left with the reply', () => {
    marbles(({ model, hot, expectObservable, expectSubscriptions, scheduler }) => {
      const stop$ = hot('---x------', { x: 'Enough.' });
      const agent = createAgent({
        model: model(['-(tf|)', '---(tf|)']),
        use: [interruptOn(stop$)],
      });
      const summaries$ = range(2).pipe(
        concatMap(() => agent.call$('?', { scheduler })),
        map(summary),
      );
      expectObservable(summaries$).toBe('-a-(b|)', { a: 'answer: t', b: 'interrupted: Enough.' });
      expectSubscriptions(stop$.subscriptions).toBe(['^!--', '-^-!']);
    });
  });

  it('is a layer, and no option of a call', async () => {
    const agent = createAgent({ model: scriptedModel([text('done')]) });
    await expect(agent.call('?', { interruptOn: NEVER } as object)).rejects.toThrow(
      "has no option 'interruptOn'",
    );
    expect(() => interruptOn('Stop.' as never)).toThrow('interruptOn() takes an Observable');
  });
});

describe('a hard stop', () => {
  it('S2: an AbortSignal errors the call with aborted, and ends the model', () => {
    marbles(({ model, cold, expectObservable, expectSubscriptions, scheduler }) => {
      const scripted = model('-t-------');
      const controller = new AbortController();
      cold('---x').subscribe(() => controller.abort(new Error('closed tab')));
      const code$ = createAgent({ model: scripted }).call$('?', {
        signal: controller.signal,
        scheduler,
      });
      expectObservable(code$.pipe(codes)).toBe('---(c|)', { c: 'aborted' });
      for (const log of scripted.subscriptions) expectSubscriptions(log).toBe('^--!');
    });
  });

  it('S2: a signal that has aborted before lets nothing happen', async () => {
    const model = scriptedModel();
    const call = createAgent({ model }).call('?', { signal: AbortSignal.abort() });
    await expect(call).rejects.toMatchObject({ code: 'aborted' });
    expect(model.requests).toEqual([]);
  });

  it('I5: unsubscribing ends the model and the tools in the same tick, and frees the session', () => {
    marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
      const scripted = model(['(cf|)', '--t(f|)']);
      const aborted: boolean[] = [];
      const tools = [
        tool({
          name: 'tool',
          description: 'Never settles.',
          run: (_input, { signal }) => {
            signal.addEventListener('abort', () => aborted.push(true));
            return NEVER;
          },
        }),
      ];
      const session = sessions(createAgent({ model: scripted, tools })).open('s');
      expectObservable(session.call$('?', { scheduler }), '^---!').toBe('----');
      scheduler.schedule(() => {
        expect(aborted).toEqual([true]);
        expect(session.interrupt()).toBe(false);
      }, 5);
      expectSubscriptions(scripted.subscriptions[0] ?? []).toBe('(^!)');
    });
  });

  it('C5: the timeouts of a call are laid over those of its agent, one by one', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const agent = createAgent({
        model: model(['(cf|)', '(tf|)']),
        tools: [tool({ name: 'tool', description: 'Never settles.', run: () => NEVER })],
        limits: { timeouts: { toolMs: 5 } },
      });
      const reply$ = agent.call$('?', { limits: { timeouts: { callMs: 50 } }, scheduler });
      expectObservable(reply$.pipe(codes)).toBe('-----(r|)', { r: 'answer: t' });
    });
  });

  it('C5: a call has 30 minutes, and each of its tools 60 seconds, by default', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const use: ModelChunk = toolCall('deaf');
      const agent = createAgent({ model: model(['(uf|)', '-'], { u: use }), tools: [deaf] });
      const seen$ = agent.stream$('?', { scheduler }).pipe(
        only('postActing'),
        map(({ result }) => textOf(result)),
        catchError((error: unknown) => of(isMillraceError(error) ? error.code : String(error))),
      );
      expectObservable(seen$).toBe('60s t 1739999ms (c|)', {
        t: "Failed: The tool 'deaf' did not finish within 60000 ms.",
        c: 'timeout',
      });
    });
  });

  it('C5: callMs ends a call that takes too long, no matter what it does', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const agent = createAgent({ model: model('-') });
      const outcome$ = agent.call$('?', { limits: { timeouts: { callMs: 5 } }, scheduler });
      expectObservable(outcome$.pipe(codes)).toBe('-----(c|)', { c: 'timeout' });
    });
  });
});
