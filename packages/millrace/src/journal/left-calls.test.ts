import { describe, expect, it } from '@jest/globals';
import {
  asapScheduler,
  defer,
  lastValueFrom,
  map,
  mergeAll,
  observeOn,
  of,
  Subject,
  takeUntil,
  tap,
  toArray,
} from 'rxjs';
import { createAgent, interruptOn, tool, type Use } from '../index.js';
import { finish, record, scriptedModel, text, toolCall, verifyEvents } from '../testing/index.js';
import {
  type CallStoreDriver,
  type Claim,
  createCallStore,
  inProcessCalls,
  journal,
} from './index.js';

/** A driver that reports each record and the end of each claim. */
const reporting = (report: (what: string) => void): CallStoreDriver => {
  const driver = inProcessCalls();
  return {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map(({ append$ }): Claim => ({
          append$: (records) =>
            defer(() => {
              for (const { kind, name } of records) report(`${kind} ${name}`);
              return append$(records);
            }),
        })),
        tap({ unsubscribe: () => report('released') }),
      ),
  };
};

const looking = (run: () => string = () => 'ok') =>
  tool({ name: 'look', description: 'Looks.', run });

describe('S7: a call that is left', () => {
  const points = [
    'preCall',
    'preReasoning',
    'reasoningChunk',
    'postReasoning',
    'look',
    'postActing',
  ];
  const uses: readonly (readonly [string, Use])[] = [
    ['no layers', []],
    ['a layer that may interrupt', interruptOn(new Subject())],
  ];

  it.each(
    points.flatMap((point) =>
      uses.flatMap(([name, use]) =>
        ['synchronous', 'asynchronous'].map((form) => ({ point, name, use, form })),
      ),
    ),
  )(
    'in $point, with a model that is $form and $name, has its error as its last record',
    async ({ point, use, form }) => {
      const leave$ = new Subject<void>();
      const after: string[] = [];
      let isLeft = false;
      const at = (what: string): void => {
        if (what !== point || isLeft) return;
        isLeft = true;
        leave$.next();
      };
      const driver = reporting((what) => void (isLeft && after.push(what)));
      const isSync = form === 'synchronous';
      const chunk$ = of(text('Well.'), toolCall('look'), finish());
      const model = scriptedModel(isSync ? chunk$ : chunk$.pipe(observeOn(asapScheduler)), [
        text('end'),
      ]);
      const agent = createAgent({
        model,
        tools: [looking(() => (at('look'), 'ok'))],
        use: [journal(createCallStore(driver)), ...[use].flat()],
      });
      const events$ = agent.stream$('?', { callId: 'c' }).pipe(takeUntil(leave$));
      await lastValueFrom(events$.pipe(tap(({ type }) => at(type))), { defaultValue: undefined });
      expect(after).toEqual(['event error', 'released']);
      const records = await lastValueFrom(driver.read$('c').pipe(mergeAll(), toArray()));
      expect(records.at(-1)).toMatchObject({ kind: 'event', name: 'error' });
    },
  );
});

describe('L1: a store that interrupts the call while it records an event', () => {
  it.each(Array.from({ length: 20 }, (_, nth) => nth))(
    'changes the order of no event: record %i',
    async (nth) => {
      const stop$ = new Subject<string>();
      let count = 0;
      const driver = reporting((what) => {
        if (what === 'released') return;
        if (count === nth) stop$.next('Stop.');
        count += 1;
      });
      const agent = createAgent({
        model: scriptedModel(
          [text('a'), toolCall('look')],
          [toolCall('look', { a: 1 }), toolCall('look', { a: 2 })],
          [text('end')],
        ),
        tools: [looking()],
        use: [journal(createCallStore(driver)), interruptOn(stop$)],
      });
      const events = await record(agent.stream$('?').pipe(verifyEvents()));
      const order = events.map(({ seq }) => seq);
      expect(order).toEqual(order.toSorted((a, b) => a - b));
      expect(events.at(-1)).toMatchObject({ type: 'postCall' });
    },
  );
});
