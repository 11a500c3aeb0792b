import { concatMap, defaultIfEmpty, map, type Observable, of, takeUntil } from 'rxjs';
import { ask$, type Asked, type Stage } from '../ask.js';
import { discard, discardUnlessKept } from '../discard.js';
import { endInterrupted } from '../end-interrupted.js';
import { endStopped } from '../end-stopped.js';
import { haltedError } from '../halted-error.js';
import { MillraceError } from '../errors.js';
import {
  type AssistantMessage,
  textBlock,
  textOf,
  toolUsesOf,
  type UserMessage,
} from '../message.js';
import type { RequestOptions } from '../model.js';
import type { Context } from '../context.js';
import { type Phase, phase } from '../phase.js';
import { readOutput$ } from '../read-output.js';
import {
  append,
  assertAnswered,
  correct,
  type Correction,
  end,
  nextIteration,
  type OpenRun,
  type Run,
  spend,
} from '../run.js';
import { withoutTools, withTools } from '../with-tools.js';

type Needs = Parameters<typeof ask$>[0] & Pick<Context, 'request' | 'output' | 'toolkit'>;
type Answer = Extract<Asked, { status: 'answered' }>;

const stage: Stage = { pre: 'preReasoning', chunk: 'reasoningChunk', post: 'postReasoning' };

/** Texts in a row that may be unreadable as an action before the call gives up. */
const maxParseRetries = 2;

/** Answers in a row that may be of another form than was asked for before the call gives up. */
const maxOutputCorrections = 2;

/** Messages in a row that a transform may end with feedback before the call gives up. */
const maxHalts = 2;

/** Asks the model what to do next. A message that asks for no tools is the answer, and ends the run. */
export const reasoning = (context: Needs): Phase =>
  phase((before) => {
    assertAnswered(before);
    const run = nextIteration(before);
    const request = { ...optionsOf(run, context), messages: messagesOf(run) };
    return ask$(context, run, stage, String(run.iteration), request).pipe(
      concatMap((asked) => {
        const spent = spend(run, asked.usage);
        return decided$(spent, decide(spent, asked, context), context).pipe(
          map((decided) => discardUnlessKept(context, decided, asked.message)),
        );
      }),
    );
  });

const messagesOf = ({ messages, feedback }: OpenRun): OpenRun['messages'] =>
  feedback.length === 0 ? messages : [...messages, ...feedback];

/** A choice that forces a tool covers the first request only: the model could never answer otherwise. */
const optionsOf = (
  { iteration, executed }: OpenRun,
  { request, toolkit, limits, model }: Needs,
): RequestOptions => {
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
      return endInterrupted(run, context, asked.message);
    case 'answered':
      if (asked.again === undefined) return accept(run, asked, context);
      return asked.halt === undefined
        ? improve(run, 'again', asked.message, asked.again, context)
        : resume(run, asked, asked.again, context);
  }
};

/** A message that a transform has ended, with a reason why. */
const resume = (
  run: OpenRun,
  { message, isShown }: Answer,
  why: string,
  context: Needs,
): OpenRun => {
  if ((run.corrections.halted ?? 0) < maxHalts) {
    return improve(run, 'halted', message, why, context, isShown);
  }
  throw haltedError(message, why);
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
const decided$ = (run: OpenRun, decided: Run, context: Needs): Observable<Run> => {
  const { output } = context;
  if (output === undefined || decided.status !== 'answer') return of(decided);
  const { answer } = decided;
  return readOutput$(output, textOf(answer)).pipe(
    takeUntil(context.interruption.cut$),
    map((read) =>
      read.valid
        ? { ...decided, output: read.value }
        : reshape(run, answer, read.problems, context),
    ),
    defaultIfEmpty(undefined),
    map((checked) => checked ?? endInterrupted(run, context, answer)),
  );
};

const reshape = (
  run: OpenRun,
  message: AssistantMessage,
  problems: readonly string[],
  context: Needs,
): OpenRun => {
  const why = `Your answer must be JSON of the schema that was asked for, and nothing else:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;
  if ((run.corrections.output ?? 0) < maxOutputCorrections) {
    return improve(run, 'output', message, why, context);
  }
  throw new MillraceError(
    'invalidResponse',
    `The model '${context.model.name}' gave no valid output, ${maxOutputCorrections + 1} times in a row: ${problems.join('; ')}`,
    { partial: textOf(message) },
  );
};

const repair = (run: OpenRun, message: AssistantMessage, feedback: string, context: Needs): Run => {
  if ((run.corrections.malformed ?? 0) < maxParseRetries) {
    return improve(run, 'malformed', message, feedback, context);
  }
  if (!isEmpty(message)) return end(run, 'answer', message);
  throw new MillraceError(
    'invalidResponse',
    `The model '${context.model.name}' wrote no action that can be read, ${maxParseRetries + 1} times in a row: ${feedback}`,
  );
};

const remind = (run: OpenRun, message: AssistantMessage, context: Needs): Run => {
  if (run.corrections.emptyAnswer === undefined) {
    return improve(run, 'emptyAnswer', message, 'Your answer was empty. Please answer.', context);
  }
  throw new MillraceError(
    'emptyAnswer',
    `The model '${context.model.name}' answered with nothing, also when it was reminded.`,
  );
};

/** Discards a message and asks for a better one: the next request shows both it and what was wrong. */
const improve = (
  run: OpenRun,
  kind: Correction,
  message: AssistantMessage,
  why: string,
  context: Needs,
  isShown?: boolean,
): OpenRun => {
  discard(context, run.iteration, message, why, isShown);
  const asked: UserMessage = {
    id: `${message.id}/${kind}`,
    role: 'user',
    content: [textBlock(why)],
  };
  const rejected = withoutToolUses(message);
  return correct(run, kind, ...(isEmpty(rejected) ? [] : [rejected]), asked);
};

const withoutToolUses = (message: AssistantMessage): AssistantMessage => ({
  ...message,
  content: message.content.filter(({ type }) => type !== 'tool_use'),
});

const isEmpty = (message: AssistantMessage): boolean =>
  textOf(message).trim() === '' &&
  message.content.every(({ type }) => type === 'text' || type === 'thinking');
