import { describe, expect, it } from '@jest/globals';
import { type AgentEvent, createAgent, tool } from 'millrace';
import { sessions } from 'millrace/sessions';
import { marbles, scriptedModel, text, toolCall } from 'millrace/testing';
import { from, lastValueFrom, map, type Observable, Subject, toArray } from 'rxjs';
import { eventOf, hello, refused } from '../events.test-support.js';
import { toParts } from './to-parts.js';

const begun = eventOf({ type: 'preCall', input: [] }, { iteration: 0 });
const asks = eventOf({ type: 'preReasoning', messages: [], options: {} });
const says = (delta: string, callId = 'c'): AgentEvent =>
  eventOf({ type: 'reasoningChunk', messageId: `${callId}/1`, kind: 'text', delta }, { callId });
const failed = eventOf({ type: 'error', error: refused });
const values = { b: begun, q: asks, t: says('t'), e: failed };

const masks = { error: () => '' };

const typed = (event$: Observable<AgentEvent>, given: Parameters<typeof toParts>[0] = masks) =>
  event$.pipe(
    toParts(given),
    map(({ type, ...part }) => ('end' in part ? `${type} ${part.end.status}` : type)),
  );

const shown = {
  s: 'callStart',
  o: 'stepStart',
  k: 'blockStart',
  d: 'blockDelta',
  K: 'blockEnd',
  O: 'stepEnd',
  f: 'callEnd failed',
  a: 'callEnd aborted',
};

describe('the parts of a call', () => {
  it('I10: an error after its error event completes the stream once everything open has ended', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold('bq-t----(e#)', values, refused);
      expectObservable(typed(event$)).toBe('so-(kd)-(KOf|)', shown);
      expectSubscriptions(event$.subscriptions).toBe('^-------!');
    });
  });

  it('X21: an error without an event ends the run as failed, and completes', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold('bq-t----#', values, refused);
      expectObservable(typed(event$)).toBe('so-(kd)-(KOf|)', shown);
      expectSubscriptions(event$.subscriptions).toBe('^-------!');
    });
  });

  it('X21: an error after the end of the run is reported, and not shown', () => {
    const reported: unknown[] = [];
    marbles(({ cold, expectObservable }) => {
      const event$ = cold('be--#', values, new TypeError('a bug'));
      const error = (it: unknown) => String(reported.push(it));
      expectObservable(typed(event$, { error })).toBe('sf--|', shown);
    });
    expect(reported).toMatchObject([{ code: 'unknown', cause: new TypeError('a bug') }]);
  });

  it('X21: an error before any event is the only one that errors, typed', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(typed(cold('---#', values, refused))).toBe('---#', shown, refused);
    });
  });

  it("X21: an error that a sub-agent's event has shown fails the run all the same", () => {
    const below = { callId: 'c/t', rootId: 'c', parentId: 'c', iteration: 0 };
    const events = {
      ...values,
      x: eventOf({ type: 'preCall', input: [] }, below),
      y: eventOf({ type: 'error', error: refused }, below),
    };
    marbles(({ cold, expectObservable }) => {
      expectObservable(typed(cold('bxy#', events, refused))).toBe('ssf(f|)', shown);
      // One that was cut has not failed by itself.
      expectObservable(typed(cold('bx-#', events, refused))).toBe('ss-(af|)', shown);
    });
  });

  it('X21: a stream that just ends has been aborted', () => {
    marbles(({ cold, expectObservable }) => {
      const event$ = cold('bq-t----|', values);
      expectObservable(typed(event$)).toBe('so-(kd)-(KOa|)', shown);
    });
  });

  it('I5: leaving it leaves the events, in the same frame', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const event$ = hot('bq-t--t', values);
      expectObservable(typed(event$), '^---!').toBe('so-(kd)', shown);
      expectSubscriptions(event$.subscriptions).toBe('^---!');
    });
  });

  it('shows nothing of a call that is over', () => {
    marbles(({ hot, expectObservable }) => {
      const event$ = hot('b-(qe)-t-q', values);
      expectObservable(typed(event$)).toBe('s-(oOf)', shown);
    });
  });

  it('S3: shows the rest of a call that is joined', async () => {
    const done$ = new Subject<string>();
    const work = tool({ name: 'work', description: 'Works.', run: () => done$ });
    const model = scriptedModel([text('Well. '), toolCall('work')], [text('Done.')]);
    const session = sessions(createAgent({ model, tools: [work] })).open('s');
    const running = session.call('?');
    const joined = lastValueFrom(
      session.stream$('And?', { onBusy: 'steer' }).pipe(
        toParts(masks),
        map(({ type }) => type),
        toArray(),
      ),
    );
    done$.next('ok');
    done$.complete();
    await running;
    const types = await joined;
    expect(types[0]).toBe('callStart');
    expect(types).toEqual(expect.arrayContaining(['toolStart', 'toolEnd', 'notice', 'blockDelta']));
    expect(types.at(-1)).toBe('callEnd');
  });

  it('each root call is a run of its own, also if they overlap', async () => {
    const [one, other] = await Promise.all([hello('one'), hello('other')]);
    const mixed = one.flatMap((event, index) => [event, other[index] ?? event]);
    const ids: Record<string, string[]> = {};
    from(mixed)
      .pipe(toParts(masks))
      .subscribe(({ type, by }) => (ids[by.callId] ??= []).push(type));
    const whole = ['callStart', 'stepStart', 'blockStart', 'blockDelta', 'blockEnd', 'stepEnd'];
    expect(ids).toEqual({ one: [...whole, 'callEnd'], other: [...whole, 'callEnd'] });
  });

  it('sub-agent calls end before their parent', () => {
    const below = { callId: 'c/t', rootId: 'c', parentId: 'c', iteration: 0 };
    const deep = { ...below, callId: 'c/t/u', parentId: 'c/t' };
    const events = [
      begun,
      eventOf({ type: 'preCall', input: [] }, below),
      eventOf({ type: 'preCall', input: [] }, deep),
      eventOf({ type: 'preCall', input: [] }, { ...below, callId: 'x', parentId: 'unheard of' }),
      failed,
      says('late'),
    ];
    const parts: string[] = [];
    from(events)
      .pipe(toParts(masks))
      .subscribe(({ type, by }) => parts.push(`${type} ${by.callId}`));
    expect(parts).toEqual([
      'callStart c',
      'callStart c/t',
      'callStart c/t/u',
      'callEnd c/t/u',
      'callEnd c/t',
      'callEnd c',
    ]);
  });

  it('twenty thousand deltas become twenty thousand parts', () => {
    const deltas = Array.from({ length: 20_000 }, () => says('x'));
    let count = 0;
    from([begun, asks, ...deltas])
      .pipe(toParts(masks))
      .subscribe(() => (count += 1));
    expect(count).toBe(20_000 + 3 + 3);
  });
});
