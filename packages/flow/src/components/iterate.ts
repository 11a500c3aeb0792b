import type { Reply } from '@millrace/core';
import { parsedJson } from '@millrace/core/adapter';
import { asAgent, createStep } from '@millrace/core/teams';
import { defer, from, map, mergeMap, type Observable, of, takeWhile, tap, toArray } from 'rxjs';
import type { IterateParams } from '../document.js';
import { outputOf, templateOf } from '../render.js';
import { type CompiledGraph, joined, type Ran, runGraph$ } from '../run-graph.js';
import type { Output, Scope } from '../scope.js';
import { childCall, done, type Work, type Worked } from '../work.js';

/** Runs a graph for each item, in a call of its own: the calls of its components are below that. */
export const iterateWork = (id: string, params: IterateParams, graph: CompiledGraph): Work => {
  const { items, delimiter, max_items = 20, concurrency = 1, separator = '\n\n' } = params;
  const template = templateOf(items);
  const each$ = (list: readonly unknown[], scope: Scope): Observable<Worked> =>
    from([...list.entries()]).pipe(
      mergeMap(
        ([at, value]) =>
          runGraph$(graph, within(id, scope, value, at + 1)).pipe(map((ran) => ({ at, ran }))),
        concurrency,
      ),
      takeWhile(({ ran }) => ran.status === 'said', true),
      toArray(),
      map((all) => [...all].sort((a, b) => a.at - b.at).map(({ ran }) => ran)),
      map((all) => collected(all, separator)),
    );
  return (scope) =>
    defer(() => {
      const given = outputOf(template, scope);
      const list = itemsIn(given, delimiter).slice(0, max_items);
      let worked = collected([], separator);
      if (list.length === 0) return of(worked);
      const step = createStep((_input, options) =>
        each$(list, { ...scope, options, place: '' }).pipe(
          tap((it) => {
            worked = it;
          }),
          map(asAnswer),
        ),
      );
      // A reply has room for a text, but not for a list.
      return asAgent(step, { name: id })
        .call$(given.text, childCall(id, scope))
        .pipe(
          map((reply): Worked =>
            reply.reason === 'interrupted' ? { status: 'ended', reply } : worked,
          ),
        );
    });
};

const asAnswer = (worked: Worked): Reply | string =>
  worked.status === 'ended' ? worked.reply : worked.output.text || 'Nothing.';

const within = (id: string, scope: Scope, value: unknown, index: number): Scope => ({
  ...scope,
  items: new Map([...scope.items, [id, { value, index }]]),
  place: `${index}/`,
});

const itemsIn = ({ text, value }: Output, delimiter: string | undefined): readonly unknown[] => {
  const list: unknown = value ?? parsedJson(text);
  if (Array.isArray(list)) return list;
  return text
    .split(delimiter ?? /\r\n|[\n\r]/u)
    .map((part) => part.trim())
    .filter((part) => part !== '');
};

/** Items whose components say nothing are left out. */
const collected = (all: readonly Ran[], separator: string): Worked => {
  const ended = all.find((ran) => ran.status === 'ended');
  if (ended !== undefined) return ended;
  const said = all.flatMap((ran) => (ran.status === 'said' ? (joined(ran.said) ?? []) : []));
  return done({
    text: said.map(({ text }) => text).join(separator),
    value: said.map(({ text, value = text }) => value),
  });
};
