import type { Reply } from '@millrace/core';
import { parsedJson } from '@millrace/core/values';
import { asAgent, createStep } from '@millrace/core/teams';
import { defer, from, map, mergeMap, type Observable, of, takeWhile, tap, toArray } from 'rxjs';
import type { IterateParams } from '../document.js';
import { outputOf, templateOf } from '../render.js';
import {
  type CompiledGraph,
  type GraphResult,
  joinOutputs,
  runGraph$,
  suspendedReply,
} from '../run-graph.js';
import { asOuter, type Output, type Scope } from '../scope.js';
import { childCall, type WorkResult, done, type Work } from '../work.js';

/** Runs a graph for each item, in its own call, which is the parent of the calls of its components. */
export const iterateWork = (id: string, params: IterateParams, graph: CompiledGraph): Work => {
  const { items, delimiter, max_items = 20, concurrency = 1, separator = '\n\n' } = params;
  const template = templateOf(items);
  const each$ = (list: readonly unknown[], scope: Scope): Observable<WorkResult> =>
    from([...list.entries()]).pipe(
      mergeMap(
        ([at, value]) =>
          runGraph$(graph, within(id, scope, value, at + 1)).pipe(map((ran) => ({ at, ran }))),
        concurrency,
      ),
      takeWhile(({ ran }) => ran.status !== 'ended', true),
      toArray(),
      map((all) => [...all].sort((a, b) => a.at - b.at).map(({ ran }) => ran)),
      map((all) => collect(all, separator)),
    );
  return (scope) =>
    defer(() => {
      const given = outputOf(template, scope);
      const list = itemsIn(given, delimiter).slice(0, max_items);
      let result = collect([], separator);
      if (list.length === 0) return of(result);
      const step = createStep((_input, options) =>
        each$(list, { ...scope, options, idPrefix: '' }).pipe(
          tap((it) => {
            result = it;
          }),
          map(asAnswer),
        ),
      );
      // The list is passed aside, because a reply only holds text.
      return asAgent(step, { name: id })
        .call$(given.text, childCall(id, scope))
        .pipe(map((reply) => resultWith(reply, result)));
    });
};

/** The answer of the call of an iteration or a loop. */
export const asAnswer = (worked: WorkResult): Reply | string =>
  worked.status === 'done' ? worked.output.text || 'Nothing.' : worked.reply;

/** The result that was passed aside, unless the call has ended early. */
export const resultWith = (reply: Reply, result: WorkResult): WorkResult => {
  if (reply.reason === 'interrupted') return { status: 'ended', reply };
  return reply.reason === 'suspended' ? { status: 'suspended', reply } : result;
};

const within = (id: string, scope: Scope, value: unknown, index: number): Scope => ({
  ...scope,
  items: new Map([...scope.items, [id, { value, index }]]),
  variables: asOuter(scope.variables),
  idPrefix: `${index}/`,
});

const itemsIn = ({ text, value }: Output, delimiter: string | undefined): readonly unknown[] => {
  const list: unknown = value ?? parsedJson(text);
  if (Array.isArray(list)) return list;
  return text
    .split(delimiter ?? /\r\n|[\n\r]/u)
    .map((part) => part.trim())
    .filter((part) => part !== '');
};

/** Collects the outputs. Items without output are left out. */
const collect = (all: readonly GraphResult[], separator: string): WorkResult => {
  const ended = all.find((ran) => ran.status === 'ended');
  if (ended !== undefined) return ended;
  const reply = suspendedReply(all.flatMap((ran) => (ran.status === 'suspended' ? ran.reply : [])));
  if (reply !== undefined) return { status: 'suspended', reply };
  const outputs = all.flatMap((ran) =>
    ran.status === 'done' ? (joinOutputs(ran.outputs) ?? []) : [],
  );
  return done({
    text: outputs.map(({ text }) => text).join(separator),
    value: outputs.map(({ text, value = text }) => value),
  });
};
