import { catchError, defaultIfEmpty, EMPTY, map, type Observable, of } from 'rxjs';
import type { CallInfo } from './call-info.js';
import { checkPrepared, splitOptions } from './call-options.js';
import type { CallPlan } from './call-plan.js';
import type { CallScope } from './call-scope.js';
import { isMillraceError } from './errors.js';
import type { Hooks } from './hooks.js';
import { type InputMessage, readInput } from './input.js';
import { ordered } from './interceptor.js';
import { isMessage } from './is-message.js';
import { plainOptionsIn } from './journal/call-record.js';
import type { StepForm } from './step.js';
import { isRecord } from './json.js';
import type { Message, UserMessage } from './message.js';
import type { Preparation, PreparedOptions } from './preparation.js';
import { hasFields, isArrayOf, isString } from './shape.js';
import { createStage, type Stage, through$ } from './stage.js';
import { readSteered } from './steering.js';
import { createToolkit, refuseUnknownChoice, type Toolkit } from './toolkit.js';

/** A call as it has been prepared. */
export interface Prepared {
  readonly plan: CallPlan;
  readonly input: readonly Message[];
  /** Whether all interceptors have had it: an interrupt may have cut them short, or one of them would not have it. */
  readonly status: 'prepared' | 'interrupted' | 'vetoed';
}

/** Leads what a call begins with through the interceptors of `prepare`. */
export const prepared$ = (
  plan: CallPlan,
  { call }: Pick<CallScope, 'call'>,
  hooks: Pick<Hooks, 'report'>,
  input: readonly Message[],
): Observable<Prepared> => {
  const { entries } = plan.toolkit.current;
  const stages = stagesOf(plan, hooks, 0, (value) => {
    planWith(plan, entries, value.options);
    readInput(value.input, call);
  });
  if (stages.length === 0) return of({ plan, input, status: 'prepared' });
  return through$(preparationOf(plan, entries, call, input), stages).pipe(
    map((done): Prepared => ({
      plan: planWith(plan, entries, done.options),
      input: readInput(done.input, call),
      status: 'prepared',
    })),
    defaultIfEmpty<Prepared, Prepared>({ plan, input, status: 'vetoed' }),
  );
};

/** How a prepared call is written down: of its options what JSON can hold, the others by name. */
export const preparedForm = (plan: CallPlan, call: CallInfo): StepForm<Prepared> => {
  const { entries } = plan.toolkit.current;
  return {
    write: ({ plan: { options, model, toolkit }, input, status }) => ({
      status,
      input,
      options: plainOptionsIn(splitOptions(options).prepared),
      lost: [
        ...(model === plan.model ? [] : ['model']),
        ...(toolkit === plan.toolkit ? [] : ['tools']),
        ...(options.toolSelection === plan.options.toolSelection ? [] : ['toolSelection']),
      ],
    }),
    isWritten: (written) =>
      hasFields(written, {
        status: (status) =>
          status === 'prepared' || status === 'interrupted' || status === 'vetoed',
        input: isArrayOf(isMessage),
        options: isRecord,
        lost: isArrayOf(isString),
      }),
    read: (written) => {
      const { status, input, options } = asWritten(written);
      checkPrepared('A prepared call', options);
      const { toolSelection } = plan.options;
      const kept = toolSelection === undefined ? options : { ...options, toolSelection };
      return { plan: planWith(plan, entries, kept), input: readInput(input, call), status };
    },
    warning: (written) => {
      const { lost } = asWritten(written);
      return lost.length === 0
        ? undefined
        : `An interceptor had prepared the call with ${lost.join(', ')} of its own, which a journal cannot hold: it goes on with those of its agent, or of resume$().`;
    },
  };
};

/** Checked before it is read. */
const asWritten = (
  written: unknown,
): Pick<Prepared, 'input' | 'status'> & {
  readonly options: PreparedOptions;
  readonly lost: readonly string[];
} =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  written as ReturnType<typeof asWritten>;

/** Tells whether anything is to be prepared. */
export const isToPrepare = ({ interceptors }: Pick<CallPlan, 'interceptors'>): boolean =>
  ordered(interceptors, 'prepare').length > 0;

/** Leads what is said to a running call through the same interceptors. What they say of options comes too late. */
export const preparedInput$ = (
  plan: CallPlan,
  call: CallInfo,
  hooks: Pick<Hooks, 'report'>,
  iteration: number,
  place: string,
  messages: readonly UserMessage[],
): Observable<readonly UserMessage[]> => {
  const read = (value: Preparation): readonly UserMessage[] =>
    readSteered(value.input, call, place);
  const stages = stagesOf(plan, hooks, iteration, read);
  if (stages.length === 0) return of(readSteered(messages, call, place));
  return through$(preparationOf(plan, plan.toolkit.current.entries, call, messages), stages).pipe(
    map(read),
    // What a guard refuses harms nobody but who has said it.
    catchError((error: unknown) => {
      if (!isMillraceError(error) || error.code !== 'guardRejected') throw error;
      hooks.report(iteration, { type: 'warning', message: error.message });
      return EMPTY;
    }),
  );
};

const stagesOf = (
  plan: CallPlan,
  hooks: Pick<Hooks, 'report'>,
  iteration: number,
  check: (value: Preparation) => unknown,
): readonly Stage<Preparation>[] =>
  ordered(plan.interceptors, 'prepare').map(({ name, operator, failOpen }) =>
    createStage<Preparation>({
      name,
      what: 'preparation',
      failOpen,
      operate$: (preparation) => of(preparation).pipe(operator),
      isUsable: (value): value is Preparation => {
        if (!isPreparation(value)) return false;
        check(value);
        return true;
      },
      onVeto: () => hooks.report(iteration, { type: 'vetoed', of: 'prepare', name }),
      onPassedOver: (_, error) =>
        hooks.report(iteration, { type: 'handlerError', of: 'prepare', name, error }),
    }),
  );

const isPreparation = (value: unknown): value is Preparation => {
  if (!isRecord(value)) return false;
  checkPrepared('A prepared call', value['options']);
  return true;
};

const preparationOf = (
  plan: CallPlan,
  entries: Toolkit['entries'],
  call: CallInfo,
  input: readonly InputMessage[],
): Preparation => {
  const { prepared } = splitOptions(plan.options);
  const options = Object.freeze({
    ...prepared,
    ...(plan.model !== undefined && { model: plan.model }),
    tools: plan.toolkit.current.entries,
  });
  return Object.freeze({ call, input, options });
};

/** `shown` are the tools that the interceptors were shown: who gives them back wants those of the call, which may have changed meanwhile. */
const planWith = (
  plan: CallPlan,
  shown: Toolkit['entries'],
  { model, tools, ...options }: PreparedOptions,
): CallPlan => {
  const { fixed } = splitOptions(plan.options);
  const isSame = tools === undefined || tools === shown;
  const toolkit = isSame ? plan.toolkit : { current: createToolkit(tools) };
  refuseUnknownChoice(options.toolChoice, toolkit.current);
  return { ...plan, model: model ?? plan.model, toolkit, options: { ...fixed, ...options } };
};
