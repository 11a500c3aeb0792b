import { describe, expect, it } from '@jest/globals';
import { createAgent, type Layer } from '../../../index.js';
import { inProcessLongTermMemory, type LongTermMemory, extractMemories } from '../index.js';
import { finish, type MarbleHelpers, marbles, text } from '../../../testing/index.js';
import { concatMap, delay, map, tap } from 'rxjs';
import type { ExtractMemoriesOptions } from './extractor.js';

const none = { o: text('{"operations":[]}'), f: finish(), x: text('no JSON') };

/** An extraction in virtual time. Each answer of its model takes as long as its diagram. */
const inBackground = (
  { scheduler, model: answers, cold, hot }: MarbleHelpers,
  diagrams: readonly string[],
  options: Partial<ExtractMemoriesOptions> = {},
) => {
  const model = answers(diagrams, none);
  const memory = options.memory ?? inProcessLongTermMemory({ clock: scheduler });
  const extraction = extractMemories({ model, quietMs: 100, ...options, memory, scheduler });
  const ask$ = (userId: string, layer: Layer = extraction) =>
    createAgent({ model: answers('1ms (tf|)'), use: [layer] }).call$('I like tea.', {
      metadata: { userId },
      scheduler,
    });
  /** Each letter of a diagram is a call of that user. */
  const ask = (diagram: string): void => {
    hot(diagram)
      .pipe(tap((userId) => ask$(userId).subscribe()))
      .subscribe();
  };
  const event$ = extraction.events$.pipe(
    map((event) => (event.type === 'memoriesExtracted' ? String(event.turns) : event.type[10])),
  );
  return { extraction, model, memory, ask$, ask, event$, cold };
};

describe('G7: extraction in the background', () => {
  it('starts after a quiet time, and the reply does not wait', () =>
    marbles((helpers) => {
      const { ask$, model, event$ } = inBackground(helpers, ['50ms (of|)']);
      helpers.expectObservable(ask$('a').pipe(map(({ text: it }) => it))).toBe('-(t|)');
      helpers.expectObservable(event$).toBe('151ms 1');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('101ms ^ 49ms !');
    }));

  it('waits for more calls within the quiet time', () =>
    marbles((helpers) => {
      const { ask, model, event$ } = inBackground(helpers, ['(of|)']);
      ask('a 89ms a 89ms a');
      helpers.expectObservable(event$).toBe('281ms 3');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('281ms (^!)');
    }));

  it('starts earlier if enough calls wait', () =>
    marbles((helpers) => {
      const { ask, event$, model } = inBackground(helpers, ['5ms (of|)', '5ms (of|)'], {
        everyTurns: 2,
      });
      ask('a 9ms a 9ms a');
      helpers.expectObservable(event$).toBe('16ms 2 109ms 1');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('11ms ^----!');
      helpers.expectSubscriptions(model.subscriptions[1] ?? []).toBe('121ms ^----!');
    }));

  it('starts after the reply, even without a wait', () =>
    marbles((helpers) => {
      const { ask$, extraction } = inBackground(helpers, ['(of|)'], { everyTurns: 1 });
      const order: string[] = [];
      extraction.events$.subscribe(() => order.push('extracted'));
      ask$('a').subscribe(() => order.push('replied'));
      helpers.flush();
      expect(order).toEqual(['replied', 'extracted']);
    }));

  it('flushes what a reply has left, in a memory that takes time', () =>
    marbles((helpers) => {
      const inner = inProcessLongTermMemory();
      const slow: LongTermMemory = {
        ...inner,
        record$: (scope, entries) =>
          inner.record$(scope, entries).pipe(delay(3, helpers.scheduler)),
      };
      const { ask$, extraction, model } = inBackground(helpers, ['50ms (of|)'], { memory: slow });
      helpers.expectObservable(ask$('a').pipe(concatMap(() => extraction.flush$()))).toBe('54ms |');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('4ms ^ 49ms !');
    }));

  it('extracts for one user one batch after another, and for others at the same time', () =>
    marbles((helpers) => {
      const { ask, model } = inBackground(helpers, ['200ms (of|)', '9ms (of|)', '9ms (of|)']);
      ask('a 9ms b 109ms a');
      helpers.expectObservable(helpers.cold('|')).toBe('|');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('101ms ^ 199ms !');
      helpers.expectSubscriptions(model.subscriptions[1] ?? []).toBe('111ms ^ 8ms !');
      helpers.expectSubscriptions(model.subscriptions[2] ?? []).toBe('301ms ^ 8ms !');
    }));

  it('limits the number of users at a time', () =>
    marbles((helpers) => {
      const { ask, model } = inBackground(helpers, ['50ms (of|)', '9ms (of|)'], { concurrency: 1 });
      ask('(ab)');
      helpers.expectObservable(helpers.cold('|')).toBe('|');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('101ms ^ 49ms !');
      helpers.expectSubscriptions(model.subscriptions[1] ?? []).toBe('151ms ^ 8ms !');
    }));

  it('flushes what waits, and completes when it is done', () =>
    marbles((helpers) => {
      const { ask, model, extraction } = inBackground(helpers, ['50ms (of|)', '9ms (of|)']);
      ask('ab');
      helpers.expectObservable(extraction.flush$(), '10ms ^').toBe('60ms |');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('10ms ^ 49ms !');
      helpers.expectSubscriptions(model.subscriptions[1] ?? []).toBe('10ms ^ 8ms !');
    }));

  it('a flush that runs extracts also from what comes meanwhile, without a quiet time', () =>
    marbles((helpers) => {
      const diagrams = ['50ms (of|)', '9ms (of|)'];
      const { ask, model, extraction } = inBackground(helpers, diagrams, { quietMs: 10_000 });
      ask('a 29ms a');
      helpers.expectObservable(extraction.flush$(), '10ms ^').toBe('69ms |');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('10ms ^ 49ms !');
      helpers.expectSubscriptions(model.subscriptions[1] ?? []).toBe('60ms ^ 8ms !');
    }));

  it('after close, calls still store their turns, and a flush has nothing to wait for', () =>
    marbles((helpers) => {
      const { ask, model, extraction, memory } = inBackground(helpers, ['(of|)']);
      extraction.close();
      ask('a');
      helpers.expectObservable(extraction.flush$({ userId: 'a' }), '10ms ^').toBe('10ms |');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe([]);
      const waiting$ = memory.recall$({ userId: 'a', sessionId: 'millrace:waiting' }, { text: '' });
      const count$ = waiting$.pipe(map(({ length }) => String(length)));
      helpers.expectObservable(count$, '20ms ^').toBe('20ms (1|)');
    }));

  it('stops immediately on close, and keeps what waits', () =>
    marbles((helpers) => {
      const { ask, model, extraction, event$, memory } = inBackground(helpers, ['50ms (of|)']);
      ask('a');
      helpers.cold('120ms x').subscribe(() => extraction.close());
      helpers.expectObservable(event$).toBe('120ms |');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('101ms ^ 18ms !');
      helpers.expectObservable(extraction.flush$(), '130ms ^').toBe('130ms |');
      const again = inBackground(helpers, ['(of|)'], { memory });
      helpers.expectObservable(again.event$).toBe('200ms 1');
      helpers.cold('200ms x').subscribe(() => again.extraction.flush$({ userId: 'a' }).subscribe());
    }));

  it('tries again, then leaves turns with unusable answers for a flush with their user', () =>
    marbles((helpers) => {
      const bad = Array.from({ length: 6 }, () => '(xf|)');
      const { ask, extraction, event$, model } = inBackground(helpers, [...bad, '(of|)'], {
        attempts: 2,
      });
      ask('a');
      // Each attempt is three requests: the model may correct its answer twice.
      helpers.expectObservable(event$).toBe('1101ms F 898ms 1');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('101ms (^!)');
      helpers.expectSubscriptions(model.subscriptions[3] ?? []).toBe('1101ms (^!)');
      helpers.cold('1500ms x').subscribe(() => extraction.flush$().subscribe());
      helpers.cold('2000ms x').subscribe(() => extraction.flush$({ userId: 'a' }).subscribe());
      helpers.expectSubscriptions(model.subscriptions[6] ?? []).toBe('2000ms (^!)');
    }));

  it('gives up on a model that does not answer, and keeps what waits', () =>
    marbles((helpers) => {
      const { ask, event$, model, extraction } = inBackground(helpers, ['-', '(of|)'], {
        attempts: 1,
      });
      ask('a');
      helpers.expectObservable(event$).toBe('120101ms F 899ms 1');
      helpers.expectSubscriptions(model.subscriptions[0] ?? []).toBe('101ms ^ 119999ms !');
      helpers.cold('121001ms x').subscribe(() => extraction.flush$({ userId: 'a' }).subscribe());
    }));

  it('gives up on a memory that does not respond, and warns in the call', () =>
    marbles((helpers) => {
      const silent: LongTermMemory = {
        ...inProcessLongTermMemory(),
        record$: () => helpers.cold('-'),
      };
      const { extraction } = inBackground(helpers, [], { memory: silent, timeoutMs: 30 });
      const agent = createAgent({ model: helpers.model('(tf|)'), use: [extraction] });
      const warning$ = agent
        .stream$('I like tea.', { metadata: { userId: 'a' }, scheduler: helpers.scheduler })
        .pipe(map((event) => (event.type === 'warning' ? event.message : '')));
      const messages: string[] = [];
      helpers.expectObservable(
        warning$.pipe(
          tap((message) => messages.push(message)),
          map(() => undefined),
        ),
      );
      helpers.flush();
      expect(messages.join('')).toContain("did not respond within 30 ms ('timeoutMs')");
    }));
});
