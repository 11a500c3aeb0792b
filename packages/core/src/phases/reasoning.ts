import { concatMap, map, type Observable } from 'rxjs';
import { ask$, type Asked, type Stage } from '../ask.js';
import { discardUnlessKept } from '../discard.js';
import { endInterrupted } from '../end-interrupted.js';
import { endStopped } from '../end-stopped.js';
import { waited$ } from '../step.js';
import { textOf, toolUsesOf } from '../message.js';
import type { RequestOptions } from '../model.js';
import type { Context } from '../context.js';
import { type Phase, phase } from '../phase.js';
import { readOutput$ } from '../read-output.js';
import {
  append,
  assertAnswered,
  end,
  type EndedRun,
  messagesOf,
  nextIteration,
  type OpenRun,
  type Run,
  spend,
} from '../run.js';
import type { Validator } from '../schema.js';
import { withoutTools, withTools } from '../request-options.js';
import {
  improve,
  isEmpty,
  paced$,
  ramped,
  remind,
  repair,
  reshape,
  resume,
  withoutToolUses,
} from './corrections.js';

type Needs = Parameters<typeof ask$>[0] &
  Pick<Context, 'interruption' | 'request' | 'output' | 'toolkit'>;
type Answer = Extract<Asked, { status: 'answered' }>;

const stage: Stage = {
  before: (asked) => ({ type: 'preReasoning', ...asked }),
  show: (hooks, iteration, delta) => hooks.show(iteration, 'reasoningChunk', delta),
  after: (answered, wish) => ({ type: 'postReasoning', ...answered, ...wish }),
};

/** Asks the model what to do next. A message that asks for no tools is the answer, and ends the run. */
export const reasoning = (context: Needs): Phase =>
  phase((before) => {
    assertAnswered(before);
    const run = nextIteration(before);
    const request = { ...optionsOf(run, context), messages: messagesOf(run, context.call) };
    return ask$(context, run, stage, String(run.iteration), request).pipe(
      concatMap((asked) => {
        const spent = spend(run, asked.usage, 'reasoning');
        const decided = decide(spent, asked, context);
        const kept$ = (then: Run): Observable<Run> =>
          paced$(run, discardUnlessKept(context, then, asked.message), context);
        return context.output === undefined || decided.status !== 'answer'
          ? kept$(decided)
          : read$(spent, decided, context.output, context).pipe(concatMap(kept$));
      }),
    );
  });

/** A choice that forces a tool covers the first request only: the model could never answer otherwise. */
const optionsOf = (
  run: OpenRun,
  { request: asked, toolkit, limits, model }: Needs,
): RequestOptions => {
  const { iteration, executed } = run;
  const request = ramped(asked, run, limits);
  if (executed >= limits.maxToolCalls) return withoutTools(request, toolkit, model);
  const { toolChoice, ...rest } = request;
  const forces = toolChoice === 'required' || typeof toolChoice === 'object';
  return withTools(iteration > 1 && forces ? rest : request, toolkit);
};

const decide = (run: OpenRun, asked: Asked, context: Needs): Run => {
  switch (asked.status) {
    case 'vetoed':
      return endStopped(run, context);
    case 'interrupted':
      return endInterrupted(run, context, asked.message, asked.says);
    case 'answered':
      if (asked.again === undefined) return accept(run, asked, context);
      return asked.halt === undefined
        ? improve(run, 'again', asked.message, asked.again, context)
        : resume(run, asked, asked.again, context);
  }
};

const accept = (run: OpenRun, asked: Answer, context: Needs): Run => {
  const { finish, stop, malformed } = asked;
  // Tool uses of a message that was cut short may be cut themselves.
  const message = finish === 'stop' ? asked.message : withoutToolUses(asked.message);
  const asksForTools = toolUsesOf(message).length > 0;
  if (asksForTools) return { ...append(run, message), stopping: stop };
  if (stop && isEmpty(message)) return endStopped(run, context);
  if (stop) return end(run, 'stopped', message, finish);
  if (finish === 'length') return end(run, 'truncated', message, finish);
  if (finish !== 'stop') return end(run, 'refused', message, finish);
  if (malformed !== undefined) return repair(run, message, malformed, context);
  if (isEmpty(message)) return remind(run, message, context);
  return context.interruption.current === undefined
    ? end(run, 'answer', message, finish)
    : endInterrupted(run, context, message);
};

/** An answer of a given form has to have it. */
const read$ = (
  run: OpenRun,
  decided: EndedRun,
  output: Validator,
  context: Needs,
): Observable<Run> => {
  const { answer } = decided;
  return waited$(context, `${run.iteration}/output`, readOutput$(output, textOf(answer))).pipe(
    map((read) => {
      if (read === undefined) return endInterrupted(run, context, answer);
      return read.valid
        ? { ...decided, output: read.value }
        : reshape(run, answer, read.problems, context);
    }),
  );
};
