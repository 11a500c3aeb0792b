import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import {
  catchError,
  EMPTY,
  firstValueFrom,
  from,
  map,
  NEVER,
  Observable,
  of,
  Subject,
  throwError,
  timer,
} from 'rxjs';
import { interruptOn } from '../interrupt-on.js';
import { createAgent } from '../../agent.js';
import { isMillraceError, MillraceError } from '../../values/errors.js';
import { prepare } from '../interceptors/prepare.js';
import { textOf } from '../../values/message.js';
import { marbles, record, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { toolResults } from '../../memories/suspend.js';
import { denyList, maxInputLength } from './lists.js';
import { type GuardedInput, guardInput } from './guard-input.js';
import { guarded$, preparationOf, said, verdictOn } from './guards.test-support.js';
import { sessions } from '../sessions/index.js';

const notBad = guardInput(({ text: said }) => said !== 'bad', { name: 'no bad' });

/** The error of a call, and what interceptors have thrown within it. */
const failureOf = async (call: Promise<unknown>): Promise<MillraceError> => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof MillraceError) return error;
  throw new Error('The call has not failed with a MillraceError.');
};

describe('guardInput', () => {
  it.each([
    ['true', true],
    ['an object that says so', { allowed: true, reason: 'fine' }],
    ['a promise', Promise.resolve(true)],
    ['an Observable', of({ allowed: true })],
    ['a list', [true]],
  ])('C1: lets pass by %s', async (_, verdict) => {
    const preparation = preparationOf([said('Hello!')]);
    const guard = guardInput(() => verdict);
    expect(await firstValueFrom(guarded$(guard, preparation))).toBe(preparation);
  });

  it.each([
    ['false', false],
    ['an object that says so', { allowed: false }],
    ['a promise', Promise.resolve(false)],
    ['an Observable', of(false)],
  ])('C1: refuses by %s', async (_, verdict) => {
    const guard = guardInput(() => verdict);
    const failed = firstValueFrom(guarded$(guard, preparationOf([said('Hello!')])));
    await expect(failed).rejects.toMatchObject({
      code: 'guardRejected',
      retryable: false,
      message: "The guard 'guardInput' rejected the input.",
      userMessage: 'This request cannot be answered.',
    });
  });

  it.each<readonly [string, () => unknown]>([
    ['an object that throws', () => Object.defineProperty({}, 'allowed', { get: thrower })],
    ['a proxy that throws', () => new Proxy({}, { get: thrower, has: thrower })],
    ['no emission', () => EMPTY],
    ['an empty list', () => []],
    ['an error', () => throwError(() => new Error('Out of order: bad words'))],
    ['a throw', thrower],
    ['a rejection', () => Promise.reject(new Error('Bad gateway'))],
    ['an async iterable that throws', (): unknown => failing()],
  ])('C1: fails closed at %s', async (_, check) => {
    const guard = guardInput(check as never, { name: 'moderation', userMessage: 'Not now.' });
    const failed = firstValueFrom(guarded$(guard, preparationOf([said('Hello!')])));
    await expect(failed).rejects.toBeInstanceOf(MillraceError);
    await expect(failed).rejects.toMatchObject({
      code: 'guardRejected',
      message: "The guard 'moderation' could not check the input and rejected it: see the cause.",
      userMessage: 'Not now.',
      cause: expect.anything(),
    });
  });

  it.each<readonly [string, () => unknown]>([
    ['nothing', () => undefined],
    ['null', () => null],
    ['a text', () => 'true'],
    ['a number', () => 1],
    ['an object without a verdict', () => ({})],
    ['an object with another word', () => ({ allowed: 'yes' })],
    ['an object of another kind', () => ({ approved: true })],
    ['a function', () => () => true],
    ['two verdicts', () => of(true, true)],
    ['a verdict, then its contrary', () => [true, false]],
    ['a list in a list', () => [[true]]],
    ['a verdict, then an error', () => from([true, null])],
    ['an object that is no Observable', () => ({ subscribe: 5 })],
  ])('C1, I23: fails closed, with a configuration error, at %s', async (_, check) => {
    const guard = guardInput(check as never, { name: 'moderation', userMessage: 'Not now.' });
    const failed = firstValueFrom(guarded$(guard, preparationOf([said('Hello!')])));
    await expect(failed).rejects.toBeInstanceOf(MillraceError);
    await expect(failed).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining("The guard 'moderation': Its check must return or emit one"),
      userMessage: 'Not now.',
    });
  });

  it('C1: says the reason to logs, the user message to users, and when to come again', () => {
    const verdict = { allowed: false, reason: 'too sad.', userMessage: 'Smile!', retryAfterMs: 5 };
    expect(
      verdictOn(
        guardInput(() => verdict, { userMessage: 'No.' }),
        'Oh.',
      ),
    ).toMatchObject({
      message: "The guard 'guardInput' rejected the input: too sad.",
      userMessage: 'Smile!',
      retryable: true,
      retryAfterMs: 5,
    });
    expect(
      verdictOn(
        guardInput(() => false, { userMessage: 'No.' }),
        'Oh.',
      ),
    ).toMatchObject({
      userMessage: 'No.',
    });
  });

  it('C7: an error of its own passes as it is; one that may pass later is retryable', () => {
    const own = new MillraceError('guardRejected', 'Own.', { userMessage: 'Mine.' });
    expect(
      verdictOn(
        guardInput(() => throwError(() => own)),
        '?',
      ),
    ).toBe(own);
    const late = new MillraceError('timeout', 'Late.');
    expect(
      verdictOn(
        guardInput(() => throwError(() => late)),
        '?',
      ),
    ).toMatchObject({
      code: 'guardRejected',
      retryable: true,
      cause: late,
    });
  });

  it('C1: looks at the text of users, in blocks and messages, and at all there is', () => {
    const seen: GuardedInput[] = [];
    const guard = guardInput((asked) => seen.push(asked) > 0);
    const other = { role: 'assistant', content: [{ type: 'text', text: 'Mine.' }] } as const;
    const two = {
      role: 'user',
      content: [
        { type: 'text', text: 'c' },
        { type: 'text', text: 'd' },
      ],
    };
    const input = [said('a b'), other, two] as const;
    verdictOn(guard, input as never, false, { userId: 'u' });
    expect(seen).toMatchObject([{ text: 'a b\n\ncd', call: { metadata: { userId: 'u' } } }]);
    expect(seen[0]?.input).toEqual(input);
    expect(Object.isFrozen(seen[0])).toBe(true);
  });

  it('C1: nothing is asked of the model, nothing stored, and the session continues', async () => {
    const model = scriptedModel([text('Good.')]);
    const session = sessions(createAgent({ model, use: [notBad] })).open('s');
    const events: string[] = [];
    const refusedCall = new Promise((resolve, reject) => {
      session.stream$('bad').subscribe({
        next: ({ type }) => events.push(type),
        error: reject,
        complete: () => resolve(undefined),
      });
    });
    const error = await failureOf(refusedCall);
    expect(JSON.stringify([error, error.message, String(error.cause)])).not.toContain('bad"');
    expect(events).toEqual(['preCall', 'error']);
    expect(model.requests).toEqual([]);
    expect(await firstValueFrom(session.memory.load$())).toEqual([]);
    expect(textOf(await session.call('good'))).toBe('Good.');
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['good']);
  });

  // The seam wraps every error of an interceptor.
  it('C1, C7: the call errors with the very error of the guard', async () => {
    const guard = guardInput(() => ({ allowed: false, reason: 'no', userMessage: 'Sorry.' }));
    const events: unknown[] = [];
    const agent = createAgent({ model: scriptedModel(), use: [guard] });
    agent.events$.subscribe((event) => events.push(event));
    expect(await failureOf(agent.call('bad'))).toMatchObject({
      code: 'guardRejected',
      message: "The guard 'guardInput' rejected the input: no.",
      userMessage: 'Sorry.',
    });
    expect(events.at(-1)).toMatchObject({ type: 'error', error: { code: 'guardRejected' } });
  });

  it('H3: comes before all else, also what is given before it; guards go in their order', async () => {
    const calls: string[] = [];
    const passes = (name: string) => guardInput(() => calls.push(name) > 0);
    const spy = jest.fn();
    const late = prepare((asked$) => {
      spy();
      return asked$;
    });
    const model = scriptedModel([text('.')]);
    const agent = createAgent({ model, use: [late, passes('a'), notBad, passes('b')] });
    await failureOf(agent.call('bad'));
    expect([calls, spy.mock.calls.length]).toEqual([['a'], 0]);
    await agent.call('good');
    expect([calls, spy.mock.calls.length]).toEqual([['a', 'a', 'b'], 1]);
  });

  it('H6: the call waits for a slow check', () => {
    marbles(({ model, cold, expectObservable, expectSubscriptions, scheduler }) => {
      const verdict$ = cold('--(t|)', { t: true });
      const agent = createAgent({ model: model('-(tf|)'), use: [guardInput(() => verdict$)] });
      const reply$ = agent.call$('?', { scheduler }).pipe(map(textOf));
      expectObservable(reply$).toBe('---(r|)', { r: 't' });
      expectSubscriptions(verdict$.subscriptions).toBe('^-!');
    });
  });

  it('I5: leaving the call leaves the check in the same tick', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const verdict$ = cold<boolean>('-----(t|)', { t: true });
      const agent = createAgent({ model: scriptedModel(), use: [guardInput(() => verdict$)] });
      expectObservable(agent.call$('?', { scheduler }), '^--!').toBe('----');
      expectSubscriptions(verdict$.subscriptions).toBe('^--!');
    });
  });

  it('S1: an interrupt leaves the check in the same tick, and nothing is asked', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler, flush }) => {
      const verdict$ = cold<boolean>('-----(t|)', { t: true });
      const model = scriptedModel();
      const agent = createAgent({ model, use: [guardInput(() => verdict$)] });
      const stop$ = timer(2, scheduler);
      const reason$ = agent
        .call$('?', { scheduler, use: [interruptOn(stop$)] })
        .pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('--(r|)', { r: 'interrupted' });
      expectSubscriptions(verdict$.subscriptions).toBe('^-!');
      flush();
      expect(model.requests).toEqual([]);
    });
  });

  it('C5: a check that never ends is ended by the time of the call', () => {
    marbles(({ expectObservable, scheduler }) => {
      const agent = createAgent({ model: scriptedModel(), use: [guardInput(() => NEVER)] });
      const failed$ = agent
        .call$('?', { scheduler, limits: { timeouts: { callMs: 4 } } })
        .pipe(catchError((error: unknown) => of(isMillraceError(error) && error.code)));
      expectObservable(failed$).toBe('----(t|)', { t: 'timeout' });
    });
  });

  const busy = () => {
    const done$ = new Subject<string>();
    const work = tool({ name: 'work', description: 'Works.', run: () => done$ });
    const model = scriptedModel([toolCall('work')], [text('Done.')], [text('Again.')]);
    const session = sessions(createAgent({ model, tools: [work], use: [notBad] })).open('s');
    return { done$, model, session };
  };

  it('S3: what is said to a running call is looked at too: the model never gets it, nor does memory', async () => {
    const { done$, model, session } = busy();
    const running = session.call('hi').catch(() => undefined);
    const outcome = session.steer('bad');
    done$.complete();
    await running;
    expect(await outcome).toMatchObject({ status: 'notDelivered' });
    const asked = model.requests.flatMap(({ messages }) => messages.map(textOf));
    expect(asked).not.toContain('bad');
    const stored = await firstValueFrom(session.memory.load$());
    expect(stored.map(textOf)).not.toContain('bad');
    expect(textOf(await session.call('good'))).toMatch(/Done|Again/);
  });

  it('S3: what is said to a running call and refused harms only itself', async () => {
    const { done$, session } = busy();
    const running = session.call('hi');
    const outcomes = [session.steer('bad'), session.steer('fine')];
    done$.complete();
    expect(textOf(await running)).toBe('Done.');
    expect(await Promise.all(outcomes)).toEqual([
      { status: 'notDelivered', why: 'vetoed' },
      { status: 'delivered', iteration: 2 },
    ]);
  });

  it('S3: a call that joins and is refused errors with guardRejected, and the other continues', async () => {
    const { done$, session } = busy();
    const running = session.call('hi');
    const joined = failureOf(session.call('bad', { onBusy: 'steer' }));
    done$.complete();
    expect(textOf(await running)).toBe('Done.');
    expect(await joined).toMatchObject({ code: 'guardRejected' });
  });

  it('T13: what brings results only has no text of a user', () => {
    const seen: string[] = [];
    const guard = guardInput(({ text: said }) => seen.push(said) > 0);
    expect(verdictOn(guard, [toolResults({ t: 'bad' })])).toBe('allowed');
    expect(seen).toEqual(['']);
  });

  it('I10: for any input and any answer, the result is the input or a MillraceError', () => {
    const verdict = fc.oneof(fc.anything(), fc.boolean(), fc.record({ allowed: fc.boolean() }));
    fc.assert(
      fc.property(
        fc.array(fc.string(), { minLength: 1, maxLength: 4 }),
        verdict,
        (texts, given) => {
          const said = verdictOn(
            guardInput(() => given as never),
            texts,
          );
          const [only, ...more] = (Array.isArray(given) ? given : [given]) as readonly unknown[];
          const isYes = more.length === 0 && (only === true || says(only));
          if (isYes) expect(said).toBe('allowed');
          else expect(['allowed', 'edited']).not.toContain(said);
          expect(said === 'allowed' || said === 'nothing' || said instanceof MillraceError).toBe(
            true,
          );
        },
      ),
      { numRuns: 500 },
    );
  });

  it('C1: how text is split into blocks makes no difference to any guard', () => {
    const guards = [denyList('bad'), maxInputLength({ characters: 5 }), notBad];
    fc.assert(
      fc.property(fc.constantFrom('bad', 'a bad b', 'good'), fc.nat(9), (it, cut) => {
        for (const guard of guards) {
          const parted = verdictOn(guard, [it.slice(0, cut), it.slice(cut)], true);
          expect(String(parted)).toBe(String(verdictOn(guard, it)));
        }
      }),
    );
  });

  it('I17: what a check throws when it is left harms no one', () => {
    const source$ = new Subject<boolean>();
    const check$ = new Observable<boolean>((subscriber) => {
      subscriber.add(thrower);
      source$.subscribe(subscriber);
    });
    let failure: unknown;
    const guarded = guarded$(
      guardInput(() => check$),
      preparationOf([said('?')]),
    );
    guarded.subscribe({ error: (error: unknown) => (failure = error) });
    source$.next(true);
    expect(() => source$.next(true)).not.toThrow();
    expect(failure).toMatchObject({ code: 'config' });
  });

  it('C1: a check is asked once a call, and again by each', async () => {
    let asked = 0;
    const guard = guardInput(() => {
      asked += 1;
      return new Observable<boolean>((subscriber) => {
        subscriber.next(true);
        subscriber.complete();
      });
    });
    const model = scriptedModel([text('1')], [text('2')]);
    const agent = createAgent({ model, use: [guard] });
    await record(agent.stream$('?'));
    await agent.call('?');
    expect(asked).toBe(2);
  });

  it('C1: refuses what cannot be, and to fail open', () => {
    const wrong = (options: object) => () => guardInput(() => true, options);
    expect(wrong({ failOpen: true })).toThrow("guardInput() has no option 'failOpen'");
    expect(wrong({ priority: 500 })).toThrow("no option 'priority'");
    expect(() => guardInput(true as never)).toThrow('takes a function that returns true');
    expect(guardInput(() => true).hook).toMatchObject({ failOpen: false, priority: 0 });
  });
});

const says = (verdict: unknown): boolean =>
  typeof verdict === 'object' &&
  verdict !== null &&
  'allowed' in verdict &&
  verdict.allowed === true;

function thrower(): never {
  throw new Error('Broken.');
}

async function* failing(): AsyncGenerator<boolean> {
  yield await Promise.resolve(true);
  throw new Error('Broken.');
}
