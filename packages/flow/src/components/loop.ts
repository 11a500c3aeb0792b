import { asAgent, createStep } from 'millrace/teams';
import { defer, EMPTY, expand, last, map, type Observable, tap } from 'rxjs';
import { compileCase } from '../conditions.js';
import type { LoopParams } from '../document.js';
import { limits } from '../limits.js';
import { checkSize } from '../render.js';
import { type CompiledGraph, type GraphResult, joinOutputs, runGraph$ } from '../run-graph.js';
import { asOuter, noOutput, type Output, type Round, type Scope } from '../scope.js';
import { childCall, done, yielding, type Work, type WorkResult } from '../work.js';
import { asAnswer, resultWith } from './iterate.js';

/** Runs a graph round by round, in its own call, which is the parent of the calls of its components. */
export const loopWork = (
  id: string,
  { max_rounds, until }: LoopParams,
  graph: CompiledGraph,
): Work => {
  const isOver = until === undefined ? () => false : compileCase(until);
  const round$ = (before: Progress, scope: Scope): Observable<Progress> => {
    const index = before.rounds.length + 1;
    const items = new Map([
      ...scope.items,
      [id, { value: undefined, index, rounds: before.rounds }],
    ]);
    const variables = asOuter(new Map([...scope.variables, ...before.variables]));
    const within = { ...scope, items, variables, idPrefix: `${index}/` };
    return runGraph$(graph, within).pipe(map((ran) => afterRound(before, ran, within, isOver)));
  };
  const rounds$ = (scope: Scope): Observable<Progress> => {
    const yields = yielding(scope);
    return round$(start, scope).pipe(
      expand((progress) =>
        progress.isOver || progress.rounds.length >= max_rounds
          ? EMPTY
          : round$(progress, scope).pipe(yields),
      ),
      last(),
    );
  };
  return (scope) =>
    defer(() => {
      let result: WorkResult = done(noOutput);
      const step = createStep((_input, options) =>
        rounds$({ ...scope, options, idPrefix: '' }).pipe(
          map(toResult),
          // The rounds are passed aside, because a reply only holds text.
          tap((it) => {
            result = it;
          }),
          map(asAnswer),
        ),
      );
      return asAgent(step, { name: id })
        .call$(`Repeats up to ${max_rounds} times.`, childCall(id, scope))
        .pipe(map((reply) => resultWith(reply, result)));
    });
};

/** The results of the rounds so far. */
interface Progress {
  readonly rounds: readonly Round[];
  readonly variables: Scope['variables'];
  /** Of all outputs, in characters. */
  readonly size: number;
  /** Of the last round. */
  readonly output: Output;
  /** Whether no other round is due: the condition is true, or the round has ended the flow. */
  readonly isOver: boolean;
  readonly early?: Exclude<GraphResult, { status: 'done' }>;
}

const start: Progress = {
  rounds: [],
  variables: new Map(),
  size: 0,
  output: noOutput,
  isOver: false,
};

const afterRound = (
  before: Progress,
  ran: GraphResult,
  within: Scope,
  isOver: (scope: Scope) => boolean,
): Progress => {
  if (ran.status !== 'done') return { ...before, output: noOutput, isOver: true, early: ran };
  const { rounds, variables } = before;
  const size = [...ran.all.values()].reduce((sum, { text }) => sum + text.length, before.size);
  checkSize(size, limits.outputs);
  const set = [...ran.variables].map(([name, value]) => [name, { value, place: 0 }] as const);
  const changed = new Map([...variables, ...set]);
  const scope = {
    ...within,
    outputs: new Map([...within.outputs, ...ran.all]),
    variables: new Map([...within.variables, ...set]),
  };
  const round = Object.fromEntries(
    [...ran.all].map(([name, { text, value = text }]) => [name, value]),
  );
  return {
    rounds: [...rounds, round],
    variables: changed,
    size,
    output: joinOutputs(ran.outputs) ?? noOutput,
    isOver: isOver(scope),
  };
};

const toResult = ({ rounds, variables, output, isOver, early }: Progress): WorkResult => {
  if (early !== undefined) return early;
  const { text, value } = output;
  return {
    status: 'done',
    output: { text, ...(value !== undefined && { value }), loop: { rounds, done: isOver } },
    variables: new Map([...variables].map(([name, it]) => [name, it.value])),
  };
};
