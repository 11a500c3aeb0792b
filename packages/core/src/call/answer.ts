import { defer, identity, map, type Observable, of } from 'rxjs';
import { type Eventual, made$, thenMap } from '../flow/contained.js';
import type { CallInfo, Reply } from '../values/reply.js';
import { defined } from '../values/options.js';
import { dropWarning, supportedOptions, withTools } from '../models/request-options.js';
import { requestOf } from './call-options.js';
import { limitsOf } from '../flow/deadline.js';
import { type CallContext, sharing } from '../seams/call-context.js';
import type { LiveToolkit } from '../tools/types.js';
import type { Context } from '../seams/context.js';
import { endInterrupted, endStopped, assistantMessage } from '../phases/limit.js';
import { fatal, MillraceError, misuse } from '../values/errors.js';
import type { Answer, Layer, LayerContext } from '../seams/layer.js';
import { trusted, turnThrough } from '../seams/layer.js';
import { loop } from '../loop.js';
import type { PhaseFactory } from '../seams/phase.js';
import type { ContentBlock, Message, ToolMessage } from '../values/message.js';
import { answerTextOf, toolCallsOf, withPlainResults } from '../values/message.js';
import { noMemory } from '../values/memory.js';
import { inTime } from '../models/timeouts.js';
import { nativePhases } from '../phases/phase-list.js';
import { createToolContext } from '../seams/tool-context.js';
import { contextMessages, type Injected, systemPrompt, textFound } from '../models/prompt.js';
import type { Call } from '../seams/call.js';
import type { EndedRun, Run } from '../run.js';
import { end, hasEnded, open, outcome, progress, repaired } from '../run.js';
import {
  hasFields,
  isArrayOf,
  isMessage,
  isNumeric,
  isOptional,
  isString,
} from '../values/shape.js';
import { cell, recorded, type StepForm } from '../step.js';
import {
  activateOnly,
  createView,
  liveToolkit,
  refuseUnknownChoice,
  type Toolkit,
  type ToolkitCell,
} from '../tools/toolkit.js';
import { fingerprintsOf, toolChanges, type ToolFingerprints } from '../tools/tool-fingerprints.js';
import { isRecord } from '../values/json.js';
import { preparedInput$ } from './prepare.js';

/** Answers a call by running the loop: the innermost answer of an agent with a model. */
export const runLoop =
  (context: CallContext): Answer =>
  (call) =>
    made$(() => {
      const run = begin(call, context);
      const own = contextOf(call, context);
      toolCallIdsOf(run.messages).forEach((id) => own.toolCallIds.add(id));
      return of(run).pipe(
        context.local(firstPhase).create?.(own) ?? identity,
        loop(own, turnThrough(context.layers, nativePhases)),
        thenMap((ended) => concluded(ended, call, context)),
      );
    });

/** A phase before the first turn. */
export const firstPhase = cell('call', (): { create?: PhaseFactory } => ({}));

/**
 * Answers a call with your own text, such as a cached answer, or an apology after its loop failed, which has the messages and usage of
 * the loop. A vetoed or interrupted call keeps its own reply. An answer that does not match `output(…)` errors with `invalidResponse`.
 */
export const answerWith = (
  context: Pick<LayerContext, 'call' | 'hooks' | 'interruption' | 'local' | 'scheduler'>,
  call: Call,
  answer: string | readonly ContentBlock[],
): Observable<Reply> =>
  defer(() => {
    const { run: latest } = context.local(progress);
    const run =
      latest === undefined || hasEnded(latest)
        ? begin(call, context)
        : { ...latest, iteration: context.hooks.iteration() };
    if (hasEnded(run)) return of(run);
    if (context.interruption.current !== undefined) return of(endInterrupted(run, context));
    const ended = end(run, 'answer', assistantMessage(context.call, 'answer', answer));
    return withOutput$(ended, call, 'The answer of a layer');
  }).pipe(map((ended) => concluded(ended, call, context)));

/** Reads the output of an answer that the model cannot correct. Errors with `invalidResponse` if it is invalid. */
export const withOutput$ = (
  ended: EndedRun,
  { output }: Pick<Call, 'output'>,
  what: string,
): Observable<EndedRun> => {
  if (output === undefined) return of(ended);
  const partial = answerTextOf(ended.answer);
  return output.read$(partial).pipe(
    map((read) => {
      if (read.valid) return { ...ended, output: read.value };
      const why = `${what} is not a valid output: ${read.problems.join('; ')}`;
      throw new MillraceError('invalidResponse', why, { partial });
    }),
  );
};

/** Starts the run of a call, and reports findings. The run of a vetoed or interrupted call has ended. */
export const begin = (
  call: Call,
  context: Pick<LayerContext, 'call' | 'hooks' | 'interruption'>,
): Run => {
  const { found, history, input, late, notes, spent } = call;
  for (const { event } of Object.values(found)) if (event) context.hooks.report(0, event);
  const injected = injectedBy(call, context);
  const run = open(history, input, { late, injected, notes, spent });
  if (call.status === 'vetoed') return endStopped(run, context);
  return call.status === 'interrupted' ? endInterrupted(run, context) : run;
};

/** The initial state of a call, which is recorded for a resume. */
interface Opening extends Conversation, Pick<Call, 'instructions' | 'createdAt'> {
  /** A layer cut the step: the history is unknown, so the call must not run. */
  readonly isCut?: true;
}

/** The earlier conversation, and the part that memory does not have yet. */
export type Conversation = Pick<Call, 'after' | 'history' | 'late'>;

type InstructionsPart = string | ((call: CallInfo) => string);

/** A system prompt: a string, a function that returns it for a call, or a list of both. */
export type Instructions = InstructionsPart | readonly InstructionsPart[];

export const instructionsOf = cell('call', (): { own?: Instructions | undefined } => ({}));

/** Opens a call: sets its history, instructions and start. A vetoed or interrupted call takes no results. */
export const opened$ = (
  call: Call,
  context: Pick<LayerContext, 'call' | 'interruption' | 'local' | 'perform' | 'scheduler'>,
  load: (willRun: boolean) => Eventual<Conversation>,
  next: Answer,
): Observable<Reply> => {
  const { call: info, interruption, local, perform, scheduler } = context;
  const willRun = call.status === 'prepared' && interruption.current === undefined;
  const { own } = local(instructionsOf);
  const openedBy$ = (load: () => Eventual<Conversation>, isCut = false): Observable<Opening> =>
    made$(() => {
      const loaded = load();
      const base = { instructions: resolved(own, info), createdAt: scheduler.now() };
      return made$(() => loaded).pipe(
        thenMap((it) => ({ ...base, ...it, ...(isCut && { isCut }) })),
      );
    });
  return perform<Opening>({
    kind: 'open',
    id: 'open',
    input: call.input,
    run: () => openedBy$(() => load(willRun)),
    cut: () => openedBy$(() => ({ history: [], late: call.late }), true),
    form: openingForm(info, own, call.toolkit),
  }).pipe(
    thenMap(({ isCut = false, ...opening }) => {
      const isOver = isCut || interruption.current !== undefined;
      const status = call.status === 'prepared' && isOver ? 'interrupted' : call.status;
      return next({ ...call, ...opening, input: splitInput(call.input).input, status });
    }),
  );
};

/** Results for earlier tool calls come first, in their own message. */
export const splitInput = (
  messages: Call['input'],
): { readonly results: ToolMessage | undefined; readonly input: Call['input'] } => {
  const [first, ...others] = messages;
  return first?.role === 'tool'
    ? { results: first, input: others }
    : { results: undefined, input: messages };
};

/** The recorded form of an opening, with the name of the agent: sub-agents have no other record. */
const openingForm = (
  call: CallInfo,
  instructions: Instructions | undefined,
  toolkit: ToolkitCell,
): StepForm<Opening> => ({
  write: ({ history, late, ...opening }) => ({
    ...opening,
    agent: call.agent.at(-1),
    tools: fingerprintsOf(toolkit.current),
    history: withPlainResults(history),
    late: withPlainResults(late),
  }),
  isWritten: (written) =>
    hasFields(written, {
      history: isArrayOf(isMessage),
      late: isArrayOf(isMessage),
      instructions: isOptional(isString),
      createdAt: isNumeric,
      agent: isOptional(isString),
      tools: isOptional((tools) => isRecord(tools) && Object.values(tools).every(isString)),
      after: isOptional((value) => value === null || isString(value)),
      isCut: isOptional((value) => value === true),
    }),
  read: (written) => {
    const { agent: name, tools: _, ...opening } = asWritten(written);
    if (name !== undefined && name !== call.agent.at(-1)) throw ofAnother(call, name);
    return { ...opening, instructions: resolved(instructions, call) };
  },
  warning: (written) => {
    const { instructions: before, tools } = asWritten(written);
    const changes = [
      ...(before === resolved(instructions, call)
        ? []
        : ['The instructions have changed since the call started.']),
      // Earlier releases did not record the tools.
      ...(tools === undefined ? [] : [toolChanges(tools, fingerprintsOf(toolkit.current)) ?? []]),
    ].flat();
    return changes.length === 0 ? undefined : changes.join(' ');
  },
});

interface WrittenOpening extends Opening {
  readonly agent?: string;
  readonly tools?: ToolFingerprints;
}

const asWritten = (written: unknown): WrittenOpening =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  written as WrittenOpening;

const resolved = (instructions: Instructions | undefined, call: CallInfo): string | undefined =>
  instructions === undefined
    ? undefined
    : joinedParts(partsOf(instructions).map((it) => (typeof it === 'function' ? it(call) : it)));

const partsOf = (instructions: Instructions): readonly InstructionsPart[] =>
  typeof instructions === 'string' || typeof instructions === 'function'
    ? [instructions]
    : instructions;

const joinedParts = (parts: readonly string[]): string =>
  parts.filter((part) => part !== '').join('\n\n');

/** The length of the start of a system prompt that is the same in every call, if the rest is not. */
const fixedLength = (
  instructions: Instructions | undefined = '',
  system = '',
): number | undefined => {
  const parts = partsOf(instructions);
  const end = parts.findIndex((part) => typeof part === 'function');
  const fixed = joinedParts(
    parts.slice(0, end === -1 ? parts.length : end).filter((part) => typeof part === 'string'),
  );
  return fixed !== '' && system.startsWith(`${fixed}\n\n`) ? fixed.length : undefined;
};

export const notAwaited = (id: string, waiting: readonly string[]): MillraceError =>
  new MillraceError(
    'invalidResume',
    `No tool call '${id}' waits for a result. Tool calls that do: ${waiting.join(', ') || 'none'}.`,
  );

const ofAnother = ({ callId, agent }: CallInfo, name: string): MillraceError =>
  fatal(
    new MillraceError(
      'invalidState',
      `The call '${callId}' was started by the agent '${name}', but '${agent.at(-1) ?? ''}' makes it now. Give parallel calls of a tool their own 'callId'.`,
    ),
  );

/** Opens a call without a history. Layers of the same name replace it. */
export const opening: Layer = trusted({
  name: 'conversation',
  priority: 60,
  single: true,
  call: (context) => (next) => (call) => {
    if (call.memory !== noMemory) throw misuse("A memory needs the layer 'conversation'.");
    const nothing = (willRun: boolean): Conversation => {
      const awaited = willRun ? splitInput(call.input).results?.content[0] : undefined;
      if (awaited !== undefined) throw notAwaited(awaited.toolCallId, []);
      return { history: repaired(call.history, context.hooks, context), late: call.late };
    };
    return opened$(call, context, nothing, next);
  },
});

/** Starts a call, after the outer layers. */
export const beginning: Layer = trusted({
  name: 'preCall',
  priority: 52,
  call: (context) => (next) => (call) => begun$(context, () => next(call)),
});

/** Continues after `preCall`, which is emitted once. A veto hides the input: each call begins with this event. */
export const begun$ = <T>(
  { hooks, local }: Pick<LayerContext, 'hooks' | 'local'>,
  next: () => Eventual<T>,
): Observable<T> => {
  const state = local(outcome);
  const { input } = state;
  state.input = undefined;
  if (input === undefined) return made$(next);
  return hooks.emit$(0, { type: 'preCall', input }, (event) => {
    if (event === undefined) hooks.report(0, { type: 'preCall', input: [] });
    return next();
  });
};

export const concluded = (
  run: EndedRun,
  call: Pick<Call, 'createdAt' | 'found'>,
  context: Pick<LayerContext, 'interruption' | 'local' | 'scheduler'>,
): Reply => {
  context.interruption.close();
  context.local(outcome).run = run;
  return replyOf(run, call, context);
};

const replyOf = (
  run: EndedRun,
  { createdAt, found }: Pick<Call, 'createdAt' | 'found'>,
  { scheduler }: Pick<LayerContext, 'scheduler'>,
): Reply => ({
  ...run.answer,
  text: answerTextOf(run.answer),
  reason: run.status,
  finish: run.finish,
  ...defined({ output: run.output }),
  ...(run.status === 'suspended' && { suspensions: run.suspensions ?? [] }),
  ...Object.values(found).reduce<Partial<Reply>>((all, { reply }) => ({ ...all, ...reply }), {}),
  iterations: run.iteration,
  toolCalls: run.toolRuns,
  usage: run.usage,
  usageByPhase: run.usageByPhase,
  createdAt,
  elapsedMs: scheduler.now() - createdAt,
});

const toolCallIdsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? toolCallsOf(message).map(({ id }) => id) : [],
  );

const injectedBy = (call: Call, { call: { callId } }: Pick<LayerContext, 'call'>): Injected => {
  const { recalled, recalledPlacement, found } = call;
  const places = [recalledPlacement, ...Object.values(found).map(({ placement }) => placement)];
  if (!places.includes('beforeInput')) return { recalled, context: [] };
  const context = contextMessages(`${callId}/context`, textFound(found, 'beforeInput'));
  return { recalled: [], context: [...recalled, ...context] };
};

const contextOf = (call: Call, context: CallContext): Context => {
  const { call: info, hooks } = context;
  const { model: plain, toolkit: tools, output, options, memory, instructions } = call;
  const shown = createView(tools, call.hidden);
  const toolkit = shown();
  if (plain === undefined)
    throw misuse(`The loop of the agent '${info.agent.at(-1) ?? ''}' needs a model.`);
  const model = output?.ready(plain) ?? inTime(plain);
  refuseUnknownChoice(options.request?.toolChoice, toolkit);
  const system = systemPrompt({ instructions, context: textFound(call.found, 'system') });
  const fixedSystem = fixedLength(context.local(instructionsOf).own, system);
  const own = requestOf(options.request, { system, fixedSystem }, output?.jsonSchema);
  const { dropped } = supportedOptions(model, withTools(own, toolkit));
  const { options: request } = supportedOptions(model, own);
  dropped.forEach((option) => hooks.report(0, dropWarning(model, option)));
  toolkit.warnings.forEach((message) => hooks.report(0, { type: 'warning', message }));
  let live: LiveToolkit | undefined;
  const phaseContext = {
    shown,
    ...context,
    model,
    memory,
    request,
    output,
    found: call.found,
    limits: limitsOf(options.limits),
    toolCallIds: new Set(),
    prepareInput$: (messages, place) =>
      preparedInput$(call, context, hooks.iteration(), place, messages),
    activateOnly: (groups) => {
      activateOnly(tools, groups);
      // `preCall` was delivered before its step was recorded.
      context.local(recorded).by?.passed();
    },
    toolContext: (lending, run, abort) =>
      createToolContext(context, (live ??= liveToolkit(tools)), lending, run, abort),
  } satisfies Omit<Context, 'toolkit'> & { readonly shown: () => Toolkit };
  return sharing(phaseContext, 'toolkit', toolkitShown);
};

function toolkitShown(this: { readonly shown: () => Toolkit }): Toolkit {
  return this.shown();
}
