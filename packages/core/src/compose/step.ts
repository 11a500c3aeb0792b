import type { Observable, OperatorFunction } from 'rxjs';
import type { Agent } from '../agent.js';
import type { CallOptions } from '../call-options.js';
import type { Callable } from '../callable.js';
import { misuse } from '../errors.js';
import type { Input } from '../input.js';
import { isRecord } from '../json.js';
import type { Reply } from '../reply.js';
import type { Session } from '../sessions/sessions.js';
import { createStep, runOf, type StepRun } from './step-runs.js';

/**
 * What can be composed: an agent or a session, or an operator from inputs to what can be an input again, such as
 * `agent.asOperator(options)` or another composition. A reply is an input, and so is a list of replies.
 */
export type Composable = Callable | OperatorFunction<Input, Input>;

/** Composables, one at least. */
export type Composables = readonly [Composable, ...Composable[]];

/** What a step emits. */
export type OutOf<AnyStep> =
  AnyStep extends Agent<infer Output>
    ? Reply<Output>
    : AnyStep extends Session<infer Output>
      ? Reply<Output>
      : AnyStep extends Callable<infer Output>
        ? Reply<Output>
        : AnyStep extends OperatorFunction<Input, infer Out>
          ? Out
          : never;

export const isStep = (value: unknown): value is Composable =>
  typeof value === 'function' || (isRecord(value) && typeof value['asOperator'] === 'function');

/** Readies a step. The options are for the calls that it makes; an operator that knows nothing of them just runs. */
export const runnerOf = (step: Composable): StepRun<Input> =>
  runOf(typeof step === 'function' ? step : step.asOperator());

/** Readies steps, or throws a `config` error where there are none, or what is none. */
export const runnersOf = (
  owner: string,
  steps: readonly Composable[],
): readonly StepRun<Input>[] => {
  if (steps.length === 0) throw misuse(`${owner} needs at least one step.`);
  const wrong = steps.findIndex((step) => !isStep(step));
  if (wrong !== -1) {
    throw misuse(
      `${owner}: the step at place ${wrong + 1} is none. Pass agents, sessions, or operators such as agent.asOperator().`,
    );
  }
  return steps.map(runnerOf);
};

/** For steps that take part in an answer, and do not give it. */
export const unspoken = ({ speaks: _, ...options }: CallOptions): CallOptions => options;

export const composed = <Out>(run: StepRun): OperatorFunction<Input, Out> =>
  // What comes out is known by the types of the steps, which a list of them does not keep.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  createStep((input, options) => run(input, options) as Observable<Out>);
