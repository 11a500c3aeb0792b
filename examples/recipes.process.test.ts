import { describe, expect, it } from '@jest/globals';
import { createAgent, isMillraceError, MillraceError, text, textSoFar } from 'millrace';
import { sessions } from 'millrace/sessions';
import { type MarbleHelpers, marbles, scriptedModel, text as says } from 'millrace/testing';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  debounceTime,
  map,
  mergeMap,
  of,
  retry,
  shareReplay,
  switchMap,
  takeUntil,
  tap,
  throwError,
  timer,
} from 'rxjs';

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'recipes.md'), 'utf8');

/** The diagrams of the recipes: a text block before the code. */
const diagrams = new Map(
  page.split('\n## ').flatMap((section): [string, string][] => {
    const [name = ''] = section.split('\n');
    const diagram = /^```text\n(.*?)^```\n\n```ts/ms.exec(section)?.[1];
    return diagram === undefined ? [] : [[name, diagram]];
  }),
);

/** The rows of a diagram, by their labels. */
const rowsOf = (recipe: string): ((label: string) => string) => {
  const rows = new Map(
    (diagrams.get(recipe) ?? '').split('\n').map((row): [string, string] => {
      const [label = '', marks = ''] = row.split(/ {2,}/);
      return [label, marks];
    }),
  );
  return (label) => {
    const row = rows.get(label);
    if (row === undefined) throw new Error(`The recipe '${recipe}' has no row '${label}'.`);
    return row;
  };
};

/** Waits for as long as the first mark of a diagram. */
const startOf = (row: string): string => `${'-'.repeat(row.search(/[^-]/))}^`;

const recipes: Readonly<
  Record<string, (row: (label: string) => string, helpers: MarbleHelpers) => void>
> = {
  'Share one call': (row, { model, scheduler, expectObservable, expectSubscriptions }) => {
    const slow = model(row('model'));
    const text$ = createAgent({ model: slow })
      .call$('Hi!', { scheduler })
      .pipe(
        map((reply) => reply.text),
        shareReplay({ bufferSize: 1, refCount: true }),
      );
    expectObservable(text$).toBe(row('first'), { r: 't' });
    expectObservable(text$, startOf(row('second'))).toBe(row('second'), { r: 't' });
    expectSubscriptions(slow.subscriptions[0] ?? []).toBe(row('calls'));
    expect(slow.subscriptions).toHaveLength(1);
  },

  'Catch an error per item': (row, { cold, scheduler, expectObservable }) => {
    const failure = throwError(() => new Error('No credit.'));
    const model = scriptedModel([says('a')], failure, [says('c')]);
    const text$ = cold(row('questions')).pipe(
      createAgent({ model }).asOperator({ scheduler, onError: () => of({ text: 'x' }) }),
      map((reply) => reply.text),
    );
    expectObservable(text$).toBe(row('replies'));
  },

  'Search as you type': (
    row,
    { model, cold, scheduler, expectObservable, expectSubscriptions },
  ) => {
    const slow = model(['-----(tf|)', '-----(tf|)'], { t: says('b') });
    const text$ = cold(row('input')).pipe(
      debounceTime(2, scheduler),
      createAgent({ model: slow }).asOperator({ scheduler, flatten: switchMap }),
      map((reply) => reply.text),
    );
    expectObservable(text$).toBe(row('replies'));
    expectSubscriptions(slow.subscriptions[0] ?? []).toBe(row('call 1'));
    expectSubscriptions(slow.subscriptions[1] ?? []).toBe(row('call 2'));
  },

  'A stop button': (row, { model, cold, scheduler, expectObservable }) => {
    const agent = createAgent({ model: model([row('model'), row('model')]) });
    const stop$ = cold(row('stop'));
    const aborted$ = agent.stream$('Hi!', { scheduler }).pipe(text(), takeUntil(stop$));
    expectObservable(aborted$).toBe(row('takeUntil'));
    const chat = sessions(agent).open('ada');
    const reply$ = chat
      .call$('Hi!', { scheduler })
      .pipe(map((reply) => [reply.reason, reply.text]));
    expectObservable(reply$).toBe(row('interrupt'), { r: ['interrupted', 'tt'] });
    expectObservable(stop$.pipe(tap(() => chat.interrupt()))).toBe(row('stop'));
  },

  'A late subscriber': (row, { model, scheduler, expectObservable }) => {
    const text$ = createAgent({ model: model(row('model')) })
      .stream$('Hi!', { scheduler })
      .pipe(textSoFar(), shareReplay({ bufferSize: 1, refCount: true }));
    const soFar = { a: 't', b: 'tt', c: 'ttt' };
    expectObservable(text$).toBe(row('first'), soFar);
    expectObservable(text$, startOf(row('late'))).toBe(row('late'), soFar);
  },

  'Retry a call': (row, { cold, scheduler, expectObservable, expectSubscriptions }) => {
    const down = new MillraceError('server', 'Down.', { retryable: true });
    const failing = cold<never>(row('call 1'), undefined, down);
    const fine = cold('-(tf|)', { t: says('r'), f: { type: 'finish', finish: 'stop' } as const });
    const text$ = createAgent({ model: scriptedModel(failing, fine) })
      .call$('Hi!', { scheduler })
      .pipe(
        retry({
          count: 2,
          delay: (error) =>
            isMillraceError(error) && error.retryable
              ? timer(5, scheduler)
              : throwError(() => error as Error),
        }),
        map((reply) => reply.text),
      );
    expectObservable(text$).toBe(row('reply'));
    expectSubscriptions(fine.subscriptions).toBe(row('call 2'));
  },

  'Many users': (row, { model, cold, scheduler, expectObservable }) => {
    const slow = '---(tf|)';
    const chats = sessions(createAgent({ model: model([slow, slow, slow]) }), { onBusy: 'queue' });
    const text$ = cold(row('questions')).pipe(
      mergeMap(
        (user) =>
          chats
            .open(user)
            .call$('Hi!', { scheduler })
            .pipe(map(() => user)),
        2,
      ),
    );
    expectObservable(text$).toBe(row('replies'));
  },
};

describe('the diagrams of docs/recipes.md', () => {
  it.each(Object.entries(recipes))('%s', (name, recipe) => {
    marbles((helpers) => recipe(rowsOf(name), helpers));
  });

  it('are all checked', () => {
    expect([...diagrams.keys()]).toEqual(Object.keys(recipes));
  });
});
