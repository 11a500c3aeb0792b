import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  filter,
  forkJoin,
  from,
  NEVER,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  race as firstOf,
  take,
  throwIfEmpty,
} from 'rxjs';
import type { CallOptions } from '../call/call-options.js';
import { type Callable, createStep, runOf, type StepRun } from '../call/callable.js';
import { MillraceError, misuse } from '../values/errors.js';
import type { Input } from '../seams/input.js';
import { isRecord } from '../values/json.js';
import { forkToolContext, silent } from '../seams/tool-context.js';
import type { Reply } from '../values/reply.js';

/**
 * A step of a composition: an agent, a session, or an operator from inputs to inputs, such as
 * `agent.asOperator(options)` or a composition. Replies and lists of replies are inputs.
 */
export type Composable = Callable | OperatorFunction<Input, Input>;

export type Composables = readonly [Composable, ...Composable[]];

export type OutOf<AnyStep> = AnyStep extends { asOperator(): OperatorFunction<Input, infer Out> }
  ? Out
  : AnyStep extends OperatorFunction<Input, infer Out>
    ? Out
    : never;

export const isStep = (value: unknown): value is Composable =>
  typeof value === 'function' || (isRecord(value) && typeof value['asOperator'] === 'function');

/** Returns the function that runs a step. The options are for its calls; plain operators ignore them. */
export const runnerOf = (step: Composable): StepRun<Input> =>
  runOf(typeof step === 'function' ? step : step.asOperator());

/** As `runnerOf` for a list. Throws a `config` error if it is empty or has other values. */
const runnersOf = (owner: string, steps: readonly Composable[]): readonly StepRun<Input>[] => {
  if (steps.length === 0) throw misuse(`${owner} needs at least one step.`);
  const wrong = steps.findIndex((step) => !isStep(step));
  if (wrong !== -1) {
    throw misuse(
      `${owner}: the step at position ${wrong + 1} is not a step. Pass agents, sessions, or operators such as agent.asOperator().`,
    );
  }
  return steps.map(runnerOf);
};

export const composed = <Out>(run: StepRun): OperatorFunction<Input, Out> =>
  // A list does not keep the types of its steps.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  createStep((input, options) => run(input, options) as Observable<Out>);

type Last<All extends Composables> = All extends readonly [...unknown[], infer AnyStep]
  ? AnyStep
  : never;

/**
 * Runs steps one after another: each gets the reply of the step before, and the last reply is emitted. The next input waits until all steps are done; `source$.pipe(a.asOperator(), b.asOperator())`
 * starts it once the first step is done. An error of a step is an error of the whole. In an agent made by `asAgent`, the last step speaks.
 */
export const sequential = <const All extends Composables>(
  ...steps: All
): OperatorFunction<Input, OutOf<Last<All>>> => {
  const runs = runnersOf('sequential()', steps);
  return composed((input, options) =>
    runs.reduce<Observable<Input>>((input$, run, index) => {
      const own = index === runs.length - 1 ? options : silent(options);
      return input$.pipe(concatMap((given) => run(index === 0 ? given : passedOn(given), own)));
    }, of(input)),
  );
};

/** Throws for a reply that cannot be an input: an empty refusal, or a suspended one. */
const passedOn = (given: Input): Input => {
  if (!isReplyOf(given)) return given;
  const { reason, name = 'agent', content } = given;
  if (reason === 'suspended') {
    throw new MillraceError(
      'invalidState',
      `The agent '${name}' waits for a tool result, which cannot be passed between the steps of sequential(). Use tools that answer immediately.`,
    );
  }
  if (reason === 'refused' && !content.some(({ type }) => type === 'text')) {
    throw new MillraceError('refused', `The model of the agent '${name}' refused to answer.`);
  }
  return given;
};

const isReplyOf = (given: Input): given is Input & Reply => isRecord(given) && 'reason' in given;

/**
 * Runs steps in parallel on the same input and emits the list of their last replies, in the order of the steps. If one errors, the others are unsubscribed and the whole errors. The next
 * input waits. A list of replies is a valid input: `sequential(parallel(a, b), judge)`.
 */
export const parallel = <const All extends Composables>(
  ...steps: All
): OperatorFunction<Input, { readonly [Place in keyof All]: OutOf<All[Place]> }> => {
  const runs = runnersOf('parallel()', steps);
  return composed((input, options) => {
    const ways = aside(options, runs.length);
    // A suspended step emits nothing, and does not end the others.
    const each = runs.map((run, at) => run(input, ways[at] ?? {}).pipe(defaultIfEmpty(undefined)));
    return forkJoin(each).pipe(
      filter((values) => !values.includes(undefined)),
      // Rethrown after the other steps were unsubscribed.
      catchError((error: unknown) =>
        defer(() => {
          throw error;
        }),
      ),
    );
  });
};

/** Options for parallel steps, which do not speak: their call ids do not depend on timing. */
const aside = (options: CallOptions, steps: number): readonly CallOptions[] => {
  const { parent, ...own } = silent(options);
  return parent === undefined
    ? Array.from({ length: steps }, () => own)
    : forkToolContext(parent, steps).map((way) => ({ ...own, parent: way }));
};

/**
 * Runs steps in parallel on the same input, emits the first reply and unsubscribes the others. A step that errors or completes without a reply drops out; if all do, the first error is thrown. The next input waits.
 */
export const race = <const All extends Composables>(
  ...steps: All
): OperatorFunction<Input, OutOf<All[number]>> => {
  const runs = runnersOf('race()', steps);
  return composed((input, options) =>
    defer(() => {
      const errors: unknown[] = [];
      const ways = aside(options, runs.length);
      const lost = (error: unknown): Observable<never> => {
        errors.push(error);
        if (errors.length < runs.length) return NEVER;
        throw errors[0];
      };
      return firstOf(
        runs.map((run, index) =>
          run(input, ways[index] ?? {}).pipe(take(1), throwIfEmpty(noReply), catchError(lost)),
        ),
      );
    }),
  );
};

const noReply = (): MillraceError =>
  new MillraceError('emptyAnswer', 'No step of race() emitted a reply.');

/** A step, or a Promise or Observable of one; `undefined` if no step fits the input. */
export type Route<AnyStep extends Composable> =
  AnyStep | undefined | ObservableInput<AnyStep | undefined>;

/**
 * Chooses a step for each input, by a function that returns it, or a Promise or Observable of it (only its first value counts). Errors with `invalidRequest` if it returns none. The next input waits. If the
 * function calls an agent, pass its second argument on: `route((input, options) => judge.call$(input, options).pipe(map(…)))`. In an agent made by `asAgent`, the chosen step speaks.
 */
export const route = <AnyStep extends Composable>(
  choose: (input: Input, options: CallOptions<undefined>) => Route<AnyStep>,
): OperatorFunction<Input, OutOf<AnyStep>> => {
  if (typeof choose !== 'function') {
    throw misuse('route() needs a function that chooses a step for an input.');
  }
  return composed((input, options) =>
    choice$(choose(input, silent(options))).pipe(
      take(1),
      defaultIfEmpty(undefined),
      concatMap((step) => {
        if (step === undefined) throw noRoute();
        if (!isStep(step))
          throw misuse('route(): the function returned something that is not a step.');
        return runnerOf(step)(input, options);
      }),
    ),
  );
};

const choice$ = <AnyStep extends Composable>(
  chosen: Route<AnyStep>,
): Observable<AnyStep | undefined> => (isAsync(chosen) ? from(chosen) : of(chosen));

const isAsync = <AnyStep extends Composable>(
  chosen: Route<AnyStep>,
): chosen is ObservableInput<AnyStep | undefined> => chosen !== undefined && !isStep(chosen);

const noRoute = (): MillraceError =>
  new MillraceError('invalidRequest', 'route() chose no step for the input.');
