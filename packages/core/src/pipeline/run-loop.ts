import { concatMap, map, type Observable, of, tap } from 'rxjs';
import { limitsOf, requestOf } from '../call-options.js';
import { lend } from '../places.js';
import type { Context } from '../context.js';
import { endStopped } from '../end-stopped.js';
import { MillraceError, misuse } from '../errors.js';
import { turnThrough } from '../layer.js';
import { loop } from '../loop.js';
import { type Message, textOf, toolUsesOf } from '../message.js';
import { ready } from '../models/ready.js';
import { nativePhases } from '../phase-list.js';
import { preparedInput$ } from '../prepared.js';
import { contextMessage, type Injected, systemPrompt } from '../prompt/assemble.js';
import { readOutput$ } from '../read-output.js';
import { numbered } from '../retrieval/numbered.js';
import { end, type OpenRun, open, type Run } from '../run.js';
import { says } from '../say.js';
import { dropWarning, supportedOptions, withTools } from '../request-options.js';
import { activateOnly } from '../tools/live-toolkit.js';
import { createView } from '../tools/select.js';
import { refuseUnknownChoice } from '../toolkit.js';
import type { CallContext, CallStage } from './call-stage.js';
import type { CallState } from './call-state.js';

/** Runs the loop until it ends. */
export const runLoop: CallStage = (context) =>
  concatMap((state) => {
    const { sources: passages } = state;
    if (passages.length > 0) context.hooks.report(0, { type: 'retrieved', passages });
    const own = contextOf(state, context);
    const { history, input, late, notes, spent } = state;
    const injected = injectedBy(state, context);
    const run = open(history, input, { late, injected, notes, spent });
    toolUseIdsOf(run.messages).forEach((id) => own.toolUseIds.add(id));
    return begun$(run, state, own).pipe(
      loop(own, turnThrough(context.scope.layers, nativePhases)),
      tap(() => context.interruption.close()),
      map((ended) => ({ ...state, run: ended })),
    );
  });

/** A call that is not to run has ended before its loop. */
export const begun$ = (
  run: OpenRun,
  { status, answer, plan }: CallState,
  { call }: Pick<CallContext, 'call'>,
): Observable<Run> => {
  if (status === 'vetoed') return of(endStopped(run, { call }));
  if (status !== 'prepared' || answer === undefined) return of(run);
  const message = says(call, 'answer', answer);
  const ended = end(run, 'answer', message);
  if (plan.output === undefined) return of(ended);
  return readOutput$(plan.output, textOf(message)).pipe(
    map((read) => {
      if (read.valid) return { ...ended, output: read.value };
      throw new MillraceError(
        'invalidResponse',
        `The answer of a stage is no valid output: ${read.problems.join('; ')}`,
        { partial: textOf(message) },
      );
    }),
  );
};

const toolUseIdsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? toolUsesOf(message).map(({ id }) => id) : [],
  );

const injectedBy = (
  { recalled, recalledPlacement, sources, contextPlacement }: CallState,
  { call }: Pick<CallContext, 'call'>,
): Injected => {
  const isFoundLate = contextPlacement === 'beforeInput';
  const found =
    isFoundLate && sources.length > 0
      ? [contextMessage(`${call.callId}/context`, numbered(sources))]
      : [];
  return isFoundLate || recalledPlacement === 'beforeInput'
    ? { recalled: [], context: [...recalled, ...found] }
    : { recalled, context: found };
};

const systemOf = ({ instructions, sources, contextPlacement }: CallState): string | undefined =>
  systemPrompt({
    instructions,
    context: contextPlacement === 'system' ? numbered(sources) : undefined,
  });

const contextOf = (
  state: CallState,
  { scope, hooks, steering, perform, throughLayers }: CallContext,
): Context => {
  const { plan, memory, hidden } = state;
  const { model: plain, toolkit: cell, output, options } = plan;
  const shown = createView(cell, hidden);
  const toolkit = shown();
  const { call, interruption, demand, scheduler, turns, values } = scope;
  if (plain === undefined) throw misuse(`The loop of the agent '${plan.agentName}' needs a model.`);
  const model = ready(plain);
  refuseUnknownChoice(options.toolChoice, toolkit);
  const own = requestOf(options, systemOf(state), output?.jsonSchema);
  const { dropped } = supportedOptions(model, withTools(own, toolkit));
  const { options: request } = supportedOptions(model, own);
  dropped.forEach((option) => hooks.report(0, dropWarning(model, option)));
  toolkit.warnings.forEach((message) => hooks.report(0, { type: 'warning', message }));
  return {
    call,
    model,
    throughLayers,
    get toolkit() {
      return shown();
    },
    memory,
    hooks,
    interruption,
    holds: scope.holds,
    steering,
    demand,
    scheduler,
    turns,
    request,
    output,
    sources: state.sources,
    limits: limitsOf(options),
    retryBudget: scope.retryBudget,
    values,
    approvers: scope.approvers,
    awaitApproval: (toolUse, iteration) =>
      scope.record?.await({ callId: call.callId, toolUse }, (change) =>
        hooks.report(iteration, change),
      ) ?? (() => undefined),
    toolUseIds: new Set(),
    perform,
    local: scope.local,
    prepareInput$: (messages, place) =>
      preparedInput$(plan, call, hooks, hooks.iteration(), place, messages),
    activateOnly: (groups) => {
      activateOnly(cell, groups);
      // It was told before the step that says so was written down.
      scope.replaying?.passed();
    },
    lend: (lending, run, abort) => lend(scope, cell, lending, run, abort),
  };
};
