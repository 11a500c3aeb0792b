import {
  catchError,
  defaultIfEmpty,
  EMPTY,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  race,
  concatMap,
} from 'rxjs';
import { toObservable } from '../../flow/eventual.js';
import { checkPrepared, plainOptionsIn } from '../../call/call-options.js';
import { isMillraceError } from '../../values/errors.js';
import { givenHistory, type InputMessage, readInput, readLateInput } from '../../seams/input.js';
import {
  type Hook,
  type Interceptor,
  interceptor,
  type InterceptorOptions,
  ordered,
  placed,
} from '../../seams/interceptor.js';
import { hasFields, isArrayOf, isMessage, isString } from '../../values/shape.js';
import { isRecord } from '../../values/json.js';
import { trusted } from '../../seams/through.js';
import type { Layer, Context } from '../../seams/layer.js';
import { noMemory } from '../../values/memory.js';
import type { UserMessage } from '../../values/message.js';
import type { Preparation, PreparedOptions } from '../../seams/preparation.js';
import { createStage, passThrough, type Stage } from '../../flow/stage.js';
import type { StepForm } from '../../journal/step-forms.js';
import type { Step } from '../../step.js';
import { createToolkit, refuseUnknownChoice, type Toolkit } from '../../tools/toolkit.js';
import type { Call } from '../../seams/call.js';
import { layerPlaces } from '../../seams/layer-places.js';
import { hooksOf } from '../../seams/read-use.js';

/**
 * Applies an operator to the input and the options of a call before it starts: emit one value to continue, none to end
 * the call with reason `stopped`; two are an error. `preCall` shows the original input.
 */
export const prepare = (
  operator: MonoTypeOperatorFunction<Preparation>,
  options: InterceptorOptions = {},
): Interceptor =>
  interceptor({
    kind: 'prepare',
    operator,
    layer: prepareLayer,
    ...placed('prepare()', operator, options),
  });

/** Runs a call through the interceptors of `prepare`, such as guards. Only input that passed all is stored. */
const prepareLayer: Layer = trusted({
  name: 'prepare',
  priority: layerPlaces.prepare,
  call: (context) => (next) => (call) =>
    context
      .perform(preparation(call, hooksOf(context.layers), context))
      .pipe(
        concatMap((prepared) =>
          next(prepared.status === 'prepared' ? prepared : { ...prepared, memory: noMemory }),
        ),
      ),
});

const preparation = (call: Call, interceptors: readonly Hook[], context: Needs): Step<Call> => {
  let hasBegun = false;
  const cut$ = (): Observable<Call> =>
    // Synchronous interceptors see the input even if the call is interrupted from the start.
    hasBegun ? interrupted$ : race(prepare$(), interrupted$);
  const prepare$ = (): Observable<Call> => {
    hasBegun = true;
    return prepared$(call, interceptors, context);
  };
  const interrupted$ = of<Call>({ ...call, status: 'interrupted' });
  const form = preparedForm(call, context);
  const own = { kind: 'prepare', id: 'prepare', input: call.input, form } as const;
  return { ...own, run: prepare$, cut: cut$ } satisfies Step<Call>;
};

type Needs = Pick<Context, 'info' | 'hooks' | 'local'>;

const prepared$ = (call: Call, interceptors: readonly Hook[], context: Needs): Observable<Call> => {
  const { entries } = call.toolkit.current;
  const stages = stagesOf(interceptors, context, 0, (value) => {
    callWith(call, entries, value.options);
    readInput(value.input, context.info);
  });
  const given = preparationOf(call, entries, context.info, call.input, earlierIn(call, context));
  return toObservable(passThrough(given, stages)).pipe(
    map((done): Call => ({
      ...callWith(call, entries, done.options),
      input: readInput(done.input, context.info),
    })),
    defaultIfEmpty<Call, Call>({ ...call, status: 'vetoed' }),
  );
};

const preparedForm = (call: Call, { info }: Needs): StepForm<Call> => {
  const { entries } = call.toolkit.current;
  return {
    write: ({ options, model, toolkit, input, status }) => ({
      status,
      input,
      options: plainOptionsIn(options),
      lost: [
        ...(model === call.model ? [] : ['model']),
        ...(toolkit === call.toolkit ? [] : ['tools']),
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
      const prepared = plainOptionsIn(options);
      checkPrepared('A prepared call', prepared);
      return { ...callWith(call, entries, prepared), input: readInput(input, info), status };
    },
    warning: (written) => {
      const { lost } = asWritten(written);
      return lost.length === 0
        ? undefined
        : `The record of the call cannot store the ${lost.join(', ')} that an interceptor set: a resumed call has those of its agent, or of resume$().`;
    },
  };
};

const asWritten = (
  written: unknown,
): Pick<Call, 'input' | 'status'> & {
  readonly options: PreparedOptions;
  readonly lost: readonly string[];
} =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  written as ReturnType<typeof asWritten>;

/**
 * Runs messages for a running call through its interceptors, and those of calls that it speaks for. Edits of options have no effect.
 * Completes empty if one of them vetoes.
 */
export const preparedInput$ = (
  context: Needs,
  call: Call,
  messages: readonly UserMessage[],
  place: string,
): Observable<readonly UserMessage[]> => {
  const { info, hooks } = context;
  const iteration = hooks.iteration();
  const read = (value: Preparation): readonly UserMessage[] =>
    readLateInput(value.input, info, place);
  const stages = stagesOf(hooks.speakerInterceptors, context, iteration, read);
  if (stages.length === 0) return of(readLateInput(messages, info, place));
  const given = preparationOf(call, call.toolkit.current.entries, info, messages);
  return toObservable(passThrough(given, stages)).pipe(
    map(read),
    // A rejected message must not fail the call.
    catchError((error: unknown) => {
      if (!isMillraceError(error) || error.code !== 'guardRejected') throw error;
      hooks.report(iteration, { type: 'warning', message: error.message });
      return EMPTY;
    }),
  );
};

const stagesOf = (
  interceptors: readonly Hook[],
  { hooks }: Pick<Needs, 'hooks'>,
  iteration: number,
  check: (value: Preparation) => unknown,
): readonly Stage<Preparation>[] =>
  ordered(interceptors, 'prepare').map(({ name, operator, failOpen }) =>
    createStage<Preparation>({
      name,
      what: 'preparation',
      failOpen,
      operate$: (value) =>
        of(value).pipe(
          operator,
          map((made) => withHistory(made, value.history)),
        ),
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

/** Interceptors do not change the history, so no guard misses a part of it. */
const withHistory = (made: Preparation, history: Preparation['history']): Preparation =>
  isRecord(made) && made.history !== history ? { ...made, history } : made;

const isPreparation = (value: unknown): value is Preparation => {
  if (!isRecord(value)) return false;
  checkPrepared('A prepared call', value['options']);
  return true;
};

const preparationOf = (
  { options: prepared, model }: Call,
  tools: Toolkit['entries'],
  call: Context['info'],
  input: readonly InputMessage[],
  history: readonly InputMessage[] = [],
): Preparation => {
  const options = Object.freeze({ ...prepared, ...(model !== undefined && { model }), tools });
  return Object.freeze({ call, input, history, options });
};

const earlierIn = ({ history }: Call, { local }: Needs): readonly InputMessage[] => {
  const { messages = [], isGuarded = false } = local(givenHistory);
  return isGuarded ? [...messages, ...history] : history;
};

/** `shown` are the tools that interceptors saw: if unedited, they mean the call's current tools. */
const callWith = (
  call: Call,
  shown: Toolkit['entries'],
  { model = call.model, tools = shown, ...options }: PreparedOptions,
): Call => {
  const { hidden } = call.toolkit.current;
  const toolkit = tools === shown ? call.toolkit : { current: createToolkit(tools, hidden) };
  refuseUnknownChoice(options.request?.toolChoice, toolkit.current);
  return { ...call, model, toolkit, options };
};
