import { parsedJson } from '@millrace/core/adapter';
import { defer, from, map, mergeMap, takeWhile, toArray } from 'rxjs';
import type { IterateParams } from '../document.js';
import { outputOf, templateOf } from '../render.js';
import { type CompiledGraph, joined, type Ran, runGraph$ } from '../run-graph.js';
import type { Output, Scope } from '../scope.js';
import { done, type Work, type Worked } from '../work.js';

/** Runs a graph for each item. */
export const iterateWork = (id: string, params: IterateParams, graph: CompiledGraph): Work => {
  const { items, delimiter, max_items = 20, concurrency = 1, separator = '\n\n' } = params;
  const template = templateOf(items);
  return (scope) =>
    defer(() =>
      from([...itemsIn(outputOf(template, scope), delimiter).slice(0, max_items).entries()]),
    ).pipe(
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
};

const within = (id: string, scope: Scope, value: unknown, index: number): Scope => ({
  ...scope,
  items: new Map([...scope.items, [id, { value, index }]]),
  place: `${scope.place}${id}/${index}/`,
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
  const said = all.flatMap((ran) => (ran.status === 'said' ? joined(ran.said) : []));
  return done({
    text: said.map(({ text }) => text).join(separator),
    value: said.map(({ text, value = text }) => value),
  });
};
