import { identity, map, of } from 'rxjs';
import { deferWork } from '../flow/eventual.js';
import type { Reply } from '../values/reply.js';
import { defined } from '../values/json.js';
import { endInterrupted, endStopped } from '../phases/limit.js';
import type { Answer, Context, PhaseFactory } from '../seams/layer.js';
import { turnThrough } from '../seams/through.js';
import { loop, nativePhases } from '../loop.js';
import { toolCallIds } from '../phases/ask.js';
import { answerTextOf } from '../values/message.js';
import { contextMessages, type Injected, textFound } from '../models/prompt.js';
import type { Call } from '../seams/call.js';
import type { EndedRun, Run } from '../run.js';
import { startRun } from '../run.js';
import { cell } from '../step.js';
import { callProgress } from '../seams/progress.js';
import { loopCall, toolCallIdsOf } from './loop-call.js';

/** Answers a call by running the loop: the innermost answer of an agent with a model. */
export const runLoop =
  (context: Context): Answer =>
  (call) =>
    deferWork(() => {
      const run = runOfCall(call, context);
      const ready = loopCall(call, context);
      const known = context.local(toolCallIds);
      toolCallIdsOf(run.messages).forEach((id) => known.add(id));
      return of(run).pipe(
        context.local(firstPhase).create?.(context, ready) ?? identity,
        loop(context, ready, turnThrough(context.layers, nativePhases)),
        map((ended) => concludeRun(ended, call, context)),
      );
    });

/** A phase before the first turn, if one is set: the layer `conversation` continues the suspended tools of sub-agents. */
export const firstPhase = cell('call', (): { create?: PhaseFactory } => ({}));

/** Starts the run of a call, and reports what layers have found for it. The run of a vetoed or interrupted call has ended. */
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

/** Makes the reply of an ended run. From here on, nothing can interrupt the call. */
export const concludeRun = (
  run: EndedRun,
  call: Pick<Call, 'createdAt' | 'found'>,
  context: Pick<Context, 'interruption' | 'local' | 'scheduler'>,
): Reply => {
  context.interruption.close();
  context.local(callProgress).concluded = run;
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

/** The texts within the messages; those in the system prompt are in the request (`loopCall`). If one is placed before the input, all are: then the history can be cached. */
const injectedBy = (call: Call, { info: { callId } }: Pick<Context, 'info'>): Injected => {
  const { recalled, recalledPlacement, found } = call;
  const places = [recalledPlacement, ...Object.values(found).map(({ placement }) => placement)];
  if (!places.includes('beforeInput')) return { recalled, context: [] };
  const context = contextMessages(`${callId}/context`, textFound(found, 'beforeInput'));
  return { recalled: [], context: [...recalled, ...context] };
};
