import { describe, expect, it } from '@jest/globals';
import { catchError, concat, EMPTY, map, NEVER, type Observable, throwError } from 'rxjs';
import { createAgent, interruptOn, type ModelChunk, textOf, tool } from '../index.js';
import { finish, marbles, scriptedModel, text, toolCall } from '../testing/index.js';
import { noUsage, type Usage } from '../values/usage.js';
import { delta, postCall } from './events.test-support.js';
import { usage$ } from './event-operators.js';

const tokens = (inputTokens: number, outputTokens = 0): Usage => ({
  ...noUsage,
  inputTokens,
  outputTokens,
});
const costs = (input: number): ModelChunk => ({ type: 'usage', usage: tokens(input, 1) });

describe('usage$', () => {
  it('R4: adds up every request as its message is whole, sub-agents and the closing one included', () => {
    const helper = createAgent({
      name: 'helper',
      model: scriptedModel([text('Aside.'), costs(7)]),
    });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_input, parent) => helper.call$('?', { parent }).pipe(map(textOf)),
    });
    const model = scriptedModel([toolCall('ask'), costs(1)], [text('Closing.'), costs(20)]);
    const totals: number[] = [];
    createAgent({ model, tools: [ask] })
      .stream$('?', { limits: { maxIterations: 1 } })
      .pipe(usage$)
      .subscribe(({ inputTokens, outputTokens }) => totals.push(inputTokens, outputTokens));
    expect(totals).toEqual([1, 1, 8, 2, 28, 3]);
  });

  it('R4: counts a request that was cut with the reply of its call', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const model = scriptedModel(
        cold('-u-t---(f|)', { u: costs(5), t: text('Half'), f: finish() }),
      );
      const total$ = createAgent({ model })
        .stream$('?', { scheduler, use: [interruptOn(cold('----x'))] })
        .pipe(
          usage$,
          map(({ inputTokens }) => inputTokens),
        );
      expectObservable(total$).toBe('----(5|)', { 5: 5 });
    });
  });

  it('emits only what has grown, from zero for each subscription, over concurrent calls', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const event$ = hot('--d-a-b-z--|', {
        d: delta('d'),
        a: postCall('', { call: 'a', usage: tokens(3) }),
        b: postCall('', { call: 'b', usage: tokens(4) }),
        z: postCall('', { call: 'z' }),
      });
      const total$ = event$.pipe(
        usage$,
        map(({ inputTokens }) => inputTokens),
      );
      expectObservable(total$).toBe('----a-b----|', { a: 3, b: 7 });
      expectObservable(total$, '-----^').toBe('------b----|', { b: 4 });
      expectSubscriptions(event$.subscriptions).toBe(['^----------!', '-----^-----!']);
    });
  });

  it('X18: forgets a call that is over: another one of the same id counts again', () => {
    marbles(({ cold, scheduler, flush }) => {
      const whole = [text('Whole.'), costs(5)];
      const cut = cold('-u-t---(f|)', { u: costs(5), t: text('Half'), f: finish() });
      const agent = createAgent({
        model: scriptedModel(
          whole,
          cut,
          throwError(() => new Error('no')),
          cut,
        ),
      });
      const totals: number[] = [];
      agent.events$.pipe(usage$).subscribe(({ inputTokens }) => totals.push(inputTokens));
      const call$ = (stop$: Observable<string> = NEVER) =>
        agent.call$('?', { callId: 'c', scheduler, use: [interruptOn(stop$)] });
      concat(
        call$(),
        call$(cold('----x')),
        call$().pipe(catchError(() => EMPTY)),
        call$(cold('----x')),
      ).subscribe();
      flush();
      expect(totals).toEqual([5, 10, 15]);
    });
  });
});
