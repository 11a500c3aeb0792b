import { defer, identity, map, type Observable, of } from 'rxjs';
import { observed } from '../flow/eventual.js';
import type { Reply } from '../values/reply.js';
import { defined } from '../values/json.js';
import { dropWarning, supportedOptions, withTools } from '../models/request-options.js';
import { requestOf } from './call-options.js';
import { limitsOf } from '../flow/deadline.js';
import { endInterrupted, endStopped, assistantMessage } from '../phases/limit.js';
import { MillraceError, misuse } from '../values/errors.js';
import type { Answer, Context, PhaseFactory } from '../seams/layer.js';
import { turnThrough } from '../seams/through.js';
import { loop, nativePhases } from '../loop.js';
import { toolCallIds } from '../phases/ask.js';
import type { ContentBlock, Message } from '../values/message.js';
import { answerTextOf, toolCallsOf } from '../values/message.js';
import { inTime } from '../models/timeouts.js';
import { contextMessages, type Injected, systemPrompt, textFound } from '../models/prompt.js';
import { answerForm, type Call, type LoopCall, loopToolkit } from '../seams/call.js';
import type { EndedRun, Run } from '../run.js';
import { end, hasEnded, reopen, startRun, outcome, progress } from '../run.js';
import { discard } from '../phases/message-builder.js';
import { cell } from '../step.js';
import { assertReady, refuseMisspelt, refuseUnknownChoice } from '../tools/toolkit.js';
import { fixedLength, instructionsOf } from './instructions.js';

/** Answers a call by running the loop: the innermost answer of an agent with a model. */
export const runLoop =
  (context: Context): Answer =>
  (call) =>
    observed(() => {
      const run = runOfCall(call, context);
      const own = loopCall(call, context);
      const known = context.local(toolCallIds);
      toolCallIdsOf(run.messages).forEach((id) => known.add(id));
      return of(run).pipe(
        context.local(firstPhase).create?.(context, own) ?? identity,
        loop(context, own, turnThrough(context.layers, nativePhases)),
        map((ended) => concludeRun(ended, call, context)),
      );
    });

/** A phase before the first turn, if a layer sets one: it continues the suspended tools of sub-agents. */
export const firstPhase = cell('call', (): { create?: PhaseFactory } => ({}));

/**
 * Answers a call with your own text, such as a cached answer, or an apology after its loop failed. If the loop has begun or ended, the
 * reply has its messages, tool calls and usage, and observers see its answer discarded. A vetoed or interrupted call keeps its own reply.
 * An answer that does not match `output(…)` errors with `invalidResponse`.
 */
export const answerWith = (
  context: Pick<Context, 'info' | 'hooks' | 'interruption' | 'local' | 'scheduler'>,
  call: Call,
  answer: string | readonly ContentBlock[],
): Observable<Reply> =>
  defer(() => {
    const run = runToAnswer(call, context);
    if (hasEnded(run)) return of(run);
    if (context.interruption.current !== undefined) return of(endInterrupted(run, context));
    const ended = end(run, 'answer', assistantMessage(context.info, 'answer', answer));
    return withOutput$(ended, context, 'The answer of a layer');
  }).pipe(map((ended) => concludeRun(ended, call, context)));

/** The run that an answer of a layer ends: that of the loop, which may have failed or ended. Without one, that of the call. */
const runToAnswer = (
  call: Call,
  context: Pick<Context, 'info' | 'hooks' | 'interruption' | 'local'>,
): Run => {
  const { run = context.local(progress).run } = context.local(outcome);
  if (run === undefined) return runOfCall(call, context);
  if (!hasEnded(run)) return { ...run, iteration: context.hooks.iteration() };
  if (call.status !== 'prepared' || context.interruption.current !== undefined) return run;
  discard(context, run.iteration, run.answer, 'stopped');
  return reopen(run);
};

/** Reads the output of an answer that no model can correct. Errors with `invalidResponse` if it is invalid. */
export const withOutput$ = (
  ended: EndedRun,
  { local }: Pick<Context, 'local'>,
  what: string,
): Observable<EndedRun> => {
  const { required } = local(answerForm);
  if (required === undefined) return of(ended);
  const partial = answerTextOf(ended.answer);
  return required.read$(partial).pipe(
    map((read) => {
      if (read.valid) return { ...ended, output: read.value };
      const why = `${what} is not a valid output: ${read.problems.join('; ')}`;
      throw new MillraceError('invalidResponse', why, { partial });
    }),
  );
};

/** Starts the run of a call, and reports findings. The run of a vetoed or interrupted call has ended. */
export const runOfCall = (
  call: Call,
  context: Pick<Context, 'info' | 'hooks' | 'interruption'>,
): Run => {
  const { found, history, input, late, notes, spent } = call;
  for (const { event } of Object.values(found)) if (event) context.hooks.report(0, event);
  const injected = injectedBy(call, context);
  const run = startRun(history, input, { late, injected, notes, spent });
  if (call.status === 'vetoed') return endStopped(run, context);
  return call.status === 'interrupted' ? endInterrupted(run, context) : run;
};

export const concludeRun = (
  run: EndedRun,
  call: Pick<Call, 'createdAt' | 'found'>,
  context: Pick<Context, 'interruption' | 'local' | 'scheduler'>,
): Reply => {
  context.interruption.close();
  context.local(outcome).run = run;
  return replyOf(run, call, context);
};

const replyOf = (
  run: EndedRun,
  { createdAt, found }: Pick<Call, 'createdAt' | 'found'>,
  { scheduler }: Pick<Context, 'scheduler'>,
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

const injectedBy = (call: Call, { info: { callId } }: Pick<Context, 'info'>): Injected => {
  const { recalled, recalledPlacement, found } = call;
  const places = [recalledPlacement, ...Object.values(found).map(({ placement }) => placement)];
  if (!places.includes('beforeInput')) return { recalled, context: [] };
  const context = contextMessages(`${callId}/context`, textFound(found, 'beforeInput'));
  return { recalled: [], context: [...recalled, ...context] };
};

const loopCall = (call: Call, context: Context): LoopCall => {
  const { info, hooks, local } = context;
  const { model: plain, options, instructions, toolkit } = call;
  const limits = limitsOf(options.limits);
  if (plain === undefined)
    throw misuse(`The loop of the agent '${info.agent.at(-1) ?? ''}' needs a model.`);
  const { required } = local(answerForm);
  const model = required?.ready(plain) ?? inTime(plain);
  local(loopToolkit).own = toolkit;
  refuseUnknownChoice(options.request?.toolChoice, toolkit.current);
  assertReady(toolkit.current, { ...context, values: call.values });
  if (limits.timeouts.tools) refuseMisspelt(limits.timeouts.tools, toolkit.current);
  const system = systemPrompt({ instructions, context: textFound(call.found, 'system') });
  const fixedSystem = fixedLength(local(instructionsOf).own, system);
  const own = requestOf(options.request, { system, fixedSystem }, required?.jsonSchema);
  const { dropped } = supportedOptions(model, withTools(own, toolkit.current));
  const { options: request } = supportedOptions(model, own);
  dropped.forEach((option) => hooks.report(0, dropWarning(model, option)));
  toolkit.current.warnings.forEach((message) => hooks.report(0, { type: 'warning', message }));
  return { ...call, model, request, limits };
};
