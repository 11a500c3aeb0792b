import type { Reply } from 'millrace';
import { parsedJson } from 'millrace/values';
import { asAgent, createStep } from 'millrace/teams';
import { defer, from, map, mergeMap, type Observable, of, reduce, takeWhile, tap } from 'rxjs';
import type { IterateParams } from '../document.js';
import { limits } from '../limits.js';
import { checkSize, joinTexts, outputOf, templateOf } from '../render.js';
import {
  type CompiledGraph,
  type GraphResult,
  joinOutputs,
  runGraph$,
  suspendedReply,
} from '../run-graph.js';
import { asOuter, type Output, type Scope } from '../scope.js';
import { childCall, done, yielding, type Work, type WorkResult } from '../work.js';

/** Runs a graph for each item, in its own call, which is the parent of the calls of its components. */
export const iterateWork = (id: string, params: IterateParams, graph: CompiledGraph): Work => {
  const { items, delimiter, max_items = 20, concurrency = 1, separator = '\n\n' } = params;
  const template = templateOf(items);
  const each$ = (list: readonly unknown[], scope: Scope): Observable<WorkResult> => {
    const yields = yielding(scope);
    return from([...list.entries()]).pipe(
      mergeMap(
        ([at, value]) =>
          runGraph$(graph, within(id, scope, value, at + 1)).pipe(
            map((ran) => settledBy(at, ran)),
            yields,
          ),
        concurrency,
      ),
      takeWhile(({ early }) => early?.status !== 'ended', true),
      reduce<Settled, readonly Settled[]>((all, item) => {
        const settled = [...all, item];
        const size = settled.reduce((sum, { output }) => sum + (output?.text.length ?? 0), 0);
        checkSize(size, limits.outputs);
        return settled;
      }, []),
      map((all) =>
        collect(
          all.toSorted((a, b) => a.at - b.at),
          separator,
        ),
      ),
    );
  };
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

/** The result of an item: of all its components, only the messages are kept. */
interface Settled {
  readonly at: number;
  readonly output?: Output;
  readonly early?: Exclude<GraphResult, { status: 'done' }>;
}

const settledBy = (at: number, ran: GraphResult): Settled => {
  if (ran.status !== 'done') return { at, early: ran };
  const output = joinOutputs(ran.outputs);
  return { at, ...(output && { output }) };
};

/** Collects the outputs. Items without output are left out. */
const collect = (all: readonly Settled[], separator: string): WorkResult => {
  const early = all.flatMap((item) => item.early ?? []);
  const ended = early.find(({ status }) => status === 'ended');
  if (ended !== undefined) return ended;
  const reply = suspendedReply(early.map((ran) => ran.reply));
  if (reply !== undefined) return { status: 'suspended', reply };
  const outputs = all.flatMap(({ output }) => output ?? []);
  return done({
    text: joinTexts(
      outputs.map(({ text }) => text),
      separator,
    ),
    value: outputs.map(({ text, value = text }) => value),
  });
};
