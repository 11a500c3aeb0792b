import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concat,
  delayWhen,
  endWith,
  filter,
  firstValueFrom,
  ignoreElements,
  map,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  Subject,
  type Subscription,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { output } from '../output.js';
import { approval } from '../approval.js';
import { interruptOn } from '../interrupt-on.js';
import { createAgent } from '../../agent.js';
import { createDemand } from '../../flow/demand.js';
import type { CallOptions } from '../../call/call-options.js';
import { on } from '../../seams/interceptor.js';
import { prepare } from '../interceptors/prepare.js';
import { textBlock, textOf } from '../../values/message.js';
import type { ModelChunk } from '../../models/model.js';
import { jsonSchema } from '../../schema/index.js';
import { finish, marbles, record, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { sessions, type Session } from './index.js';

const codeOf = (error: unknown): unknown => Reflect.get(Object(error), 'code');

/** What a call came to: its reason and text, or the code of its error. */
const outcome$ = (session: Session, input: string, options: CallOptions): Observable<string> =>
  session.call$(input, options).pipe(
    map((reply) => `${reply.reason}: ${textOf(reply)}`),
    catchError((error: unknown) => of(String(codeOf(error)))),
  );

const stored = (session: Session): Promise<readonly string[]> =>
  firstValueFrom(
    session.memory.load$().pipe(map((all) => all.map((it) => `${it.role}: ${textOf(it)}`))),
  );

describe('a call that finds its session busy', () => {
  it('S3: with reject it errors, and says what else there is', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const session = sessions(createAgent({ model: model('--t-(f|)') })).open('s');
      const later$ = timer(1, scheduler);
      const first$ = outcome$(session, 'a', { scheduler });
      expectObservable(
        merge(first$, later$.pipe(mergeMap(() => outcome$(session, 'b', { scheduler })))),
      ).toBe('-b--(a|)', { a: 'answer: t', b: 'busy' });
    });
  });

  it('S3: with queue each waits for the one before, in order', () => {
    marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
      const slow = model(['--t-(f|)', '--t-(f|)', '--t-(f|)']);
      const session = sessions(createAgent({ model: slow }), { onBusy: 'queue' }).open('s');
      const asked = ['a', 'b', 'c'].map((name) =>
        outcome$(session, name, { scheduler }).pipe(map((it) => `${name} ${it}`)),
      );
      expectObservable(merge(...asked)).toBe('----a---b---(c|)', {
        a: 'a answer: t',
        b: 'b answer: t',
        c: 'c answer: t',
      });
      ['^---!', '----^---!', '--------^---!'].forEach((log, index) =>
        expectSubscriptions(slow.subscriptions[index] ?? []).toBe(log),
      );
    });
  });

  it('S3: with queue a later one remembers the earlier ones, and events do not interleave', async () => {
    const model = scriptedModel([text('1')], [text('2')], [text('3')]);
    const agent = createAgent({ model });
    const session = sessions(agent, { onBusy: 'queue' }).open('s');
    const heard: string[] = [];
    session.events$
      .pipe(filter(({ type }) => type === 'preCall' || type === 'postCall'))
      .subscribe(({ type, callId }) => heard.push(`${type} ${callId}`));
    await Promise.all(['a', 'b', 'c'].map((callId) => session.call(callId, { callId })));
    expect(heard).toEqual(['a', 'b', 'c'].flatMap((id) => [`preCall ${id}`, `postCall ${id}`]));
    expect(await stored(session)).toEqual([
      'user: a',
      'assistant: 1',
      'user: b',
      'assistant: 2',
      'user: c',
      'assistant: 3',
    ]);
  });

  it('S3: the queue is bounded', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const session = sessions(createAgent({ model: model(['--(tf|)', '--(tf|)']) }), {
        onBusy: 'queue',
        maxQueue: 1,
      }).open('s');
      const asked = ['a', 'b', 'c'].map((name) => outcome$(session, name, { scheduler }));
      expectObservable(merge(...asked)).toBe('c-a-(b|)', {
        a: 'answer: t',
        b: 'answer: t',
        c: 'queueFull',
      });
    });
  });

  it('S3: the queue can be listed, and a call that leaves is no longer in it', () => {
    const session = sessions(createAgent({ model: scriptedModel(NEVER, NEVER) }), {
      onBusy: 'queue',
    }).open('s');
    const seen: string[] = [];
    const list = session.queue.calls$.subscribe((calls) =>
      seen.push(calls.map(({ callId }) => callId).join()),
    );
    const [a, b, c] = ['a', 'b', 'c'].map((callId) =>
      session.call$(callId, { callId }).subscribe(),
    );
    expect(session.queue.calls.map(({ callId, input }) => [callId, input.map(textOf)])).toEqual([
      ['b', ['b']],
      ['c', ['c']],
    ]);
    b?.unsubscribe();
    a?.unsubscribe();
    expect(seen).toEqual(['', 'b', 'b,c', 'c', '']);
    expect(session.interrupt()).toBe(true);
    c?.unsubscribe();
    expect(session.interrupt()).toBe(false);
    list.unsubscribe();
  });

  it('S3: the queue can be emptied: those calls end as interrupted, and memory knows nothing of them', async () => {
    const gate$ = new Subject<never>();
    const session = sessions(createAgent({ model: scriptedModel(gate$, [text('later')]) }), {
      onBusy: 'queue',
    }).open('s');
    const running = session.call('a');
    const waiting = [session.call('b'), session.call('c')];
    expect(session.queue.clear('Never mind.')).toBe(2);
    for (const reply of await Promise.all(waiting)) {
      expect([reply.reason, textOf(reply), reply.iterations]).toEqual([
        'interrupted',
        'Never mind.',
        0,
      ]);
    }
    expect(session.queue.calls).toEqual([]);
    session.interrupt('Enough.');
    await running;
    expect(await stored(session)).toEqual(['user: a', 'assistant: Enough.']);
    expect(session.queue.clear()).toBe(0);
  });

  it('I6: an interrupt with an id ends one that waits, and no other', async () => {
    const session = sessions(createAgent({ model: scriptedModel(NEVER, [text('c')]) }), {
      onBusy: 'queue',
    }).open('s');
    const [a, b, c] = ['a', 'b', 'c'].map((callId) => session.call(callId, { callId }));
    expect(session.interrupt('No.', 'b')).toBe(true);
    expect((await b)?.reason).toBe('interrupted');
    expect(session.queue.calls.map(({ callId }) => callId)).toEqual(['c']);
    session.interrupt();
    expect((await a)?.reason).toBe('interrupted');
    expect((await c)?.reason).toBe('answer');
  });

  it('C5: callMs does not count the waiting', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const session = sessions(createAgent({ model: model(['-----(tf|)', '-----(tf|)']) }), {
        onBusy: 'queue',
      }).open('s');
      const impatient = outcome$(session, 'b', {
        scheduler,
        limits: { timeouts: { callMs: 3 } },
      });
      expectObservable(merge(outcome$(session, 'a', { scheduler }), impatient)).toBe(
        '-----a--(b|)',
        {
          a: 'answer: t',
          b: 'timeout',
        },
      );
    });
  });

  it('S3: with switch the running call ends as interrupted, then the new one begins', () => {
    marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
      const slow = model(['-t---(f|)', '--t(f|)']);
      const session = sessions(createAgent({ model: slow }), { onBusy: 'switch' }).open('s');
      const second$ = timer(3, scheduler).pipe(
        mergeMap(() => outcome$(session, 'b', { scheduler })),
      );
      expectObservable(merge(outcome$(session, 'a', { scheduler }), second$)).toBe('---a--(b|)', {
        a: 'interrupted: t',
        b: 'answer: t',
      });
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^--!');
      expectSubscriptions(slow.subscriptions[1] ?? []).toBe('---^--!');
    });
  });

  it('S3: with switch those that wait are passed over, but what they said is remembered', async () => {
    const open$ = new ReplaySubject<void>(1);
    const session = sessions(
      createAgent({
        model: scriptedModel([text('1')], [text('3')]),
        use: [
          on(
            'postReasoning',
            delayWhen(() => open$),
          ),
        ],
      }),
      { onBusy: 'switch' },
    ).open('s');
    const [a, b, c] = ['a', 'b', 'c'].map((name) => session.call(name));
    expect(session.queue.calls).toHaveLength(2);
    open$.next();
    expect((await a)?.reason).toBe('interrupted');
    expect((await b)?.reason).toBe('interrupted');
    expect((await c)?.reason).toBe('answer');
    expect(await stored(session)).toEqual([
      'user: a',
      'assistant: 1',
      'user: b',
      'assistant: Interrupted.',
      'user: c',
      'assistant: 3',
    ]);
  });

  it('S3: 200 synchronous calls in a queue do not overflow the stack', () => {
    const count = 200;
    const open$ = new ReplaySubject<void>(1);
    const answers = Array.from({ length: count }, () => [text('.')]);
    const session = sessions(
      createAgent({
        model: scriptedModel(...answers),
        use: [
          on(
            'preReasoning',
            delayWhen(() => open$),
          ),
        ],
      }),
      { onBusy: 'queue', maxQueue: count },
    ).open('s');
    let ended = 0;
    for (let n = 0; n < count; n += 1) session.call$('?').subscribe(() => (ended += 1));
    expect(session.queue.calls).toHaveLength(count - 1);
    open$.next();
    expect(ended).toBe(count);
    expect(session.queue.calls).toEqual([]);
  });

  it.each(['queue', 'switch', 'steer', 'reject'] as const)(
    'S3: with %s a tool that calls the session which it runs in does not wait for itself',
    async (onBusy) => {
      const model = scriptedModel([toolCall('again')], [text('Well.')]);
      const again = tool({
        name: 'again',
        description: 'Asks again.',
        run: (_input, context): Observable<string> =>
          session.call$('?', { parent: context, onBusy }).pipe(
            map(textOf),
            catchError((error: unknown) => of(String(codeOf(error)))),
          ),
      });
      const session = sessions(createAgent({ model, tools: [again] })).open('s');
      const reply = await session.call('?');
      expect(reply.toolCalls.map(({ output }) => output)).toEqual(['busy']);
    },
  );

  /** Ends the first of two calls, and does something within its last event. */
  const atTheEnd = (act: (session: Session) => void) => {
    const open$ = new ReplaySubject<void>(1);
    const session = sessions(
      createAgent({
        model: scriptedModel([text('1')], [text('2')], [text('3')]),
        use: [
          on(
            'preReasoning',
            delayWhen(() => open$),
          ),
        ],
      }),
      { onBusy: 'queue' },
    ).open('s');
    const heard: string[] = [];
    session.events$
      .pipe(filter(({ type }) => ['preCall', 'postCall', 'error'].includes(type)))
      .subscribe(({ type, callId }) => heard.push(`${type} ${callId}`));
    session.stream$('a', { callId: 'a' }).subscribe(({ type }) => {
      if (type === 'postCall') act(session);
    });
    session.call$('b', { callId: 'b' }).subscribe();
    open$.next();
    return { session, heard };
  };

  it('H4: a call that is refused meanwhile does not wake the next call before the last event of the one before', () => {
    const codes: unknown[] = [];
    const { heard } = atTheEnd((session) => {
      session
        .call$('c', { callId: 'c', onBusy: 'reject' })
        .subscribe({ error: (error: unknown) => codes.push(codeOf(error)) });
    });
    expect(codes).toEqual(['busy']);
    expect(heard.filter((it) => !it.endsWith('c'))).toEqual([
      'preCall a',
      'postCall a',
      'preCall b',
      'postCall b',
    ]);
  });

  it('S3: with switch one that has its turn but has not begun is passed over too', async () => {
    const { session } = atTheEnd((it) => {
      it.call$('c', { onBusy: 'switch' }).subscribe();
    });
    expect(await stored(session)).toEqual([
      'user: a',
      'assistant: 1',
      'user: b',
      'assistant: Interrupted.',
      'user: c',
      'assistant: 2',
    ]);
  });

  it('I6: in the last event of a call, an interrupt and a message do not reach the next one', async () => {
    const outcomes: unknown[] = [];
    const { session, heard } = atTheEnd((it) => {
      outcomes.push(it.interrupt());
      it.steer$('Wait.').subscribe((outcome) => outcomes.push(outcome));
    });
    expect(outcomes).toEqual([false, { status: 'notDelivered', why: 'notRunning' }]);
    expect(heard.at(-1)).toBe('postCall b');
    expect(await stored(session)).toEqual(['user: a', 'assistant: 1', 'user: b', 'assistant: 2']);
  });

  it('H4: the events of a queued call of the same family are reported as they happen', async () => {
    const order: string[] = [];
    const open$ = new Subject<void>();
    const inner = sessions(
      createAgent({
        name: 'inner',
        model: scriptedModel(
          () => open$.pipe(ignoreElements(), endWith(text('1'), finish())),
          () => {
            order.push('asked');
            return [text('2')];
          },
        ),
      }),
      { onBusy: 'queue' },
    ).open('shared');
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_input, context): Observable<string> =>
        inner.call$('?', { parent: context }).pipe(map(textOf)),
    });
    const model = scriptedModel(
      [toolCall('ask', {}, 'a'), toolCall('ask', {}, 'b')],
      [text('Done.')],
    );
    const running = record(
      createAgent({ model, tools: [ask] })
        .stream$('?', { callId: 'root' })
        .pipe(tap(({ type, callId }) => order.push(`${type} ${callId}`))),
    );
    open$.complete();
    await running;
    expect(order.indexOf('preCall root/b')).toBeLessThan(order.indexOf('asked'));
    expect(order.indexOf('postCall root/a')).toBeLessThan(order.indexOf('preCall root/b'));
  });

  it('S3: a call that wants another output cannot join one that runs', async () => {
    const session = sessions(createAgent({ model: scriptedModel(NEVER) })).open('s');
    const running = session.call$('?').subscribe();
    const schema = { type: 'object', properties: {} } as const;
    await expect(
      session.call('?', { onBusy: 'steer', use: [output(jsonSchema(schema))] }),
    ).rejects.toMatchObject({
      code: 'busy',
    });
    running.unsubscribe();
  });

  it('S3: a call that joins keeps the output and the approval of its handle, and brings no other', async () => {
    const asked: string[] = [];
    const done$ = new Subject<string>();
    const model = scriptedModel(
      concat(done$.pipe(ignoreElements()), of(toolCall('work'), finish())),
      [text('{}'), finish()],
    );
    const agent = createAgent({ model, tools: [slowTool(() => 'done')] });
    const session = sessions(agent).open('s');
    const schema = { type: 'object', properties: {} } as const;
    const careful = session.with(
      output(jsonSchema(schema)),
      approval(({ tool: name }) => asked.push(name) > 0),
    );
    const first = careful.call('?');
    const second = careful.call('And?', { onBusy: 'steer' });
    const never = approval(() => asked.push('other') < 0);
    const third = session.with(never).call('?', { onBusy: 'steer' });
    await expect(third).rejects.toMatchObject({
      code: 'busy',
      message: expect.stringContaining('Omit approval(…) to join it'),
    });
    done$.complete();
    expect((await first).output).toEqual({});
    expect((await second).output).toEqual({});
    expect(asked).toEqual(['work']);
  });

  it('H4: the next call begins after the last event of one that is left', () => {
    const speaking$ = new Subject<ModelChunk>();
    const talking = sessions(createAgent({ model: scriptedModel(speaking$, [text('2')]) }), {
      onBusy: 'queue',
    }).open('s');
    const order: string[] = [];
    talking.events$.subscribe(({ type, callId }) => {
      order.push(`${type} ${callId}`);
      if (type === 'reasoningChunk' && callId === 'a') running.unsubscribe();
    });
    const running: Subscription = talking.stream$('a', { callId: 'a' }).subscribe();
    talking.call$('b', { callId: 'b' }).subscribe();
    speaking$.next(text('1'));
    expect(order.slice(2, 5)).toEqual(['reasoningChunk a', 'error a', 'preCall b']);
  });
});

const slowTool = (run: () => unknown) => tool({ name: 'work', description: 'Works.', run });

describe('steering', () => {
  it('S3: with steer the running call takes the message at its next turn, and both get its reply', async () => {
    const done$ = new Subject<string>();
    const model = scriptedModel([toolCall('work')], [text('All of it.')]);
    const agent = createAgent({ model, tools: [slowTool(() => done$)] });
    const session = sessions(agent).open('s');
    const first = record(session.stream$('Do it.', { callId: 'a' }));
    const second = firstValueFrom(
      session.stream$('And this.', { onBusy: 'steer' }).pipe(toArray()),
    );
    done$.next('Worked.');
    done$.complete();
    const events = await first;
    expect(events.at(-1)).toMatchObject({ type: 'postCall', callId: 'a' });
    const late = await second;
    expect(late[0]).toMatchObject({ type: 'actingChunk', callId: 'a' });
    expect(late.at(-1)).toBe(events.at(-1));
    expect(events.filter(({ type }) => type === 'steered')).toMatchObject([
      { iteration: 2, message: { role: 'user' } },
    ]);
    expect(model.requests[1]?.messages.map((it) => it.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'user',
    ]);
    expect(await stored(session)).toEqual([
      'user: Do it.',
      'assistant: ',
      'tool: ',
      'user: And this.',
      'assistant: All of it.',
    ]);
  });

  it('S3: reports when it was delivered', () => {
    marbles(({ model, cold, expectObservable, scheduler }) => {
      const session = sessions(
        createAgent({
          model: model(['-(cf|)', '-(tf|)']),
          tools: [tool({ name: 'tool', description: 'Works.', run: () => cold('---(x|)') })],
        }),
      ).open('s');
      const said$ = timer(2, scheduler).pipe(mergeMap(() => session.steer$('And?')));
      expectObservable(merge(session.call$('?', { scheduler }).pipe(map(textOf)), said$)).toBe(
        '----s(r|)',
        {
          s: { status: 'delivered', iteration: 2 },
          r: 't',
        },
      );
    });
  });

  it('S3: what comes too late is not delivered, and as a call is busy', async () => {
    const answer$ = new Subject<never>();
    const session = sessions(
      createAgent({ model: scriptedModel(concat(of(text('Done.')), answer$, of(finish()))) }),
    ).open('s');
    const running = session.call('?');
    const said = session.steer('Wait!');
    const called = session.call('Wait!', { onBusy: 'steer' }).catch(codeOf);
    answer$.complete();
    expect(await said).toEqual({ status: 'notDelivered', why: 'ended' });
    expect(await called).toBe('busy');
    expect(textOf(await running)).toBe('Done.');
    expect(await stored(session)).toEqual(['user: ?', 'assistant: Done.']);
  });

  it('S3: without a running call, or with another one, nothing is delivered', async () => {
    const notRunning = { status: 'notDelivered', why: 'notRunning' };
    const session = sessions(createAgent({ model: scriptedModel(NEVER) })).open('s');
    expect(await session.steer('Hello?')).toEqual(notRunning);
    const running = session.call$('?', { callId: 'a' }).subscribe();
    expect(await session.steer('Hello?', 'b')).toEqual(notRunning);
    running.unsubscribe();
    expect(await session.steer('Hello?', 'a')).toEqual(notRunning);
  });

  it('S3: what is taken back is not delivered', async () => {
    const done$ = new Subject<string>();
    const model = scriptedModel([toolCall('work')], [text('Done.')]);
    const session = sessions(createAgent({ model, tools: [slowTool(() => done$)] })).open('s');
    const running = session.call('?');
    session.steer$('No.').subscribe().unsubscribe();
    done$.complete();
    await running;
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
    ]);
  });

  it('S3: is spoken to also before its first turn, and in order', async () => {
    const open$ = new ReplaySubject<void>(1);
    const model = scriptedModel([text('Done.')]);
    const session = sessions(createAgent({ model, use: [prepare(delayWhen(() => open$))] })).open(
      's',
    );
    const running = session.call('1');
    const said = [session.steer('2'), session.steer([{ role: 'user', content: [textBlock('3')] }])];
    open$.next();
    await running;
    expect(await Promise.all(said)).toEqual([
      { status: 'delivered', iteration: 1 },
      { status: 'delivered', iteration: 1 },
    ]);
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['1', '2', '3']);
    const ids = model.requests[0]?.messages.map(({ id }) => id.replace(/^.*?\//, ''));
    expect(ids).toEqual(['input/0', 'input/1/0/0', 'input/1/1/0']);
  });

  it('L9: only a user can speak to a running call', async () => {
    const session = sessions(createAgent({ model: scriptedModel(NEVER) })).open('s');
    const running = session.call$('?').subscribe();
    const tools = [{ role: 'assistant', content: [textBlock('I?')] }] as const;
    await expect(session.steer(tools)).rejects.toMatchObject({ code: 'invalidRequest' });
    await expect(session.steer('')).rejects.toMatchObject({ code: 'invalidRequest' });
    running.unsubscribe();
  });

  it('I5: who has joined a call hears when it is left, and leaving it leaves the call alone', async () => {
    const session = sessions(createAgent({ model: scriptedModel(NEVER) }), {
      onBusy: 'steer',
    }).open('s');
    const running = session.call$('?').subscribe();
    session.call$('Me too.').subscribe().unsubscribe();
    expect(session.interrupt(undefined, 'nobody')).toBe(false);
    const joined = session.call('Me too.').catch(codeOf);
    running.unsubscribe();
    expect(await joined).toBe('busy');
    expect(session.interrupt()).toBe(false);
  });

  it('S1, S2: who has joined a call can interrupt it, and leave it by a signal', async () => {
    const session = sessions(createAgent({ model: scriptedModel(NEVER) })).open('s');
    const running = session.call('?');
    const abort = new AbortController();
    const left = session.call('Me?', { onBusy: 'steer', signal: abort.signal }).catch(codeOf);
    abort.abort();
    expect(await left).toBe('aborted');
    const stop$ = new Subject<string>();
    const joined = session
      .call('Stop?', { onBusy: 'steer', use: [interruptOn(stop$)] })
      .catch(codeOf);
    stop$.next('Stopped.');
    expect(textOf(await running)).toBe('Stopped.');
    expect(await joined).toBe('busy');
  });

  it('S1: who has joined a call can interrupt it by a layer of his session', async () => {
    const session = sessions(createAgent({ model: scriptedModel(NEVER) })).open('s');
    const running = session.call('?');
    const stop$ = new Subject<string>();
    const own = session.with(interruptOn(stop$));
    const joined = own.call('Stop?', { onBusy: 'steer' }).catch(codeOf);
    stop$.next('Stopped.');
    expect(textOf(await running)).toBe('Stopped.');
    expect(await joined).toBe('busy');
  });

  it('I16: who has joined a call pauses it, until it leaves', () => {
    const seen: boolean[] = [];
    const session = sessions(
      createAgent({
        model: scriptedModel((_request, { demand }) => {
          demand.open$.subscribe((open) => seen.push(open));
          return NEVER;
        }),
      }),
      { onBusy: 'steer' },
    ).open('s');
    const running = session.call$('?').subscribe();
    const demand = createDemand(2);
    const joined = session.stream$('!', { demand }).subscribe();
    demand.backlog(2);
    joined.unsubscribe();
    expect(seen).toEqual([true, false, true]);
    running.unsubscribe();
  });

  it('S3: steering an idle session is a call of its own', async () => {
    const session = sessions(createAgent({ model: scriptedModel([text('Hi.')]) })).open('s');
    expect(textOf(await session.call('Hello.', { onBusy: 'steer' }))).toBe('Hi.');
  });

  it('S4: clear starts a new conversation, and keeps what the session has cost', async () => {
    const spent = { inputTokens: 7, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const model = scriptedModel(
      [text('Hi.'), { type: 'usage', usage: spent }, finish()],
      [text('Who?'), finish()],
    );
    const session = sessions(createAgent({ model })).open('s');
    await session.call('I am Ann.', { callId: 'a' });
    await session.clear();
    expect(await stored(session)).toEqual([]);
    expect(await session.saveState()).toMatchObject({ usage: spent, messages: [] });
    await session.call('Who am I?');
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['Who am I?']);
  });

  it('S4: clear is refused while a call runs, and changes nothing then', async () => {
    const session = sessions(createAgent({ model: scriptedModel(() => NEVER) })).open('s');
    const running = session.call$('?').subscribe();
    await expect(session.clear()).rejects.toMatchObject({ code: 'busy' });
    running.unsubscribe();
    await session.clear();
  });

  it('S3: shows the last 40 turns unless it has another memory, and keeps all of them', async () => {
    const look = toolCall('look');
    const model = scriptedModel(
      ...Array.from({ length: 42 }, (_, n) => [[look], [text(`answer ${n}`)]]).flat(),
      [text('done')],
    );
    const tools = [tool({ name: 'look', description: 'Looks.', run: () => 'seen' })];
    const session = sessions(createAgent({ model, tools })).open('s');
    for (let n = 0; n < 42; n += 1) await session.call(`question ${n}`);
    await session.call('And now?');
    const shown = model.requests.at(-1)?.messages ?? [];
    // Whole turns: a question, a tool call, its result and the answer.
    expect(shown).toHaveLength(40 * 4 + 1);
    expect(textOf(shown[0] ?? { content: [] })).toContain('question 2');
    expect((await session.saveState()).messages).toHaveLength(43 * 4 - 2);
  });
});
