import { map, type Observable, of, timer } from 'rxjs';
import type { Asked } from '../ask.js';
import type { Context } from '../context.js';
import { discard } from '../discard.js';
import { MillraceError } from '../errors.js';
import { haltedError } from '../halted-error.js';
import type { Limits } from '../limits.js';
import { type AssistantMessage, textBlock, textOf, type UserMessage } from '../message.js';
import { waited$ } from '../step.js';
import type { Malformed, RequestOptions } from '../model.js';
import { correct, type Correction, end, type OpenRun, type Run } from '../run.js';

type Needs = Pick<Context, 'hooks' | 'model' | 'limits'>;

/** Answers in a row that may be of another form than was asked for before the call gives up. */
const maxOutputCorrections = 2;

/** Messages in a row that a transform may end with feedback before the call gives up. */
const maxHalts = 2;

/** Discards a message and asks for a better one: the next request shows both it and what was wrong. */
export const improve = (
  run: OpenRun,
  kind: Correction,
  message: AssistantMessage,
  why: string,
  context: Needs,
  isShown?: boolean,
): OpenRun => {
  discard(context, run.iteration, message, why, isShown);
  const rejected = withoutToolUses(message);
  const feedback = feedbackOn(message, kind, why);
  return correct(run, kind, ...(isEmpty(rejected) ? [] : [rejected]), feedback);
};

const feedbackOn = ({ id }: AssistantMessage, kind: Correction, why: string): UserMessage => ({
  id: `${id}/${kind}`,
  role: 'user',
  content: [textBlock(why)],
});

/** A message that a transform has ended, with a reason why. */
export const resume = (
  run: OpenRun,
  { message, isShown }: Extract<Asked, { status: 'answered' }>,
  why: string,
  context: Needs,
): OpenRun => {
  if ((run.corrections.halted ?? 0) < maxHalts) {
    return improve(run, 'halted', message, why, context, isShown);
  }
  throw haltedError(message, why);
};

/** An answer of another form than was asked for. */
export const reshape = (
  run: OpenRun,
  message: AssistantMessage,
  problems: readonly string[],
  context: Needs,
): OpenRun => {
  const why = `Your answer must be JSON of the schema that was asked for, with no text around it:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;
  if ((run.corrections.output ?? 0) < maxOutputCorrections) {
    return improve(run, 'output', message, why, context);
  }
  throw new MillraceError(
    'invalidResponse',
    `The model '${context.model.name}' gave no valid output, ${maxOutputCorrections + 1} times in a row: ${problems.join('; ')}`,
    { partial: textOf(message) },
  );
};

/** A text in which no action can be read. When that has been said often enough, prose is the answer. */
export const repair = (
  run: OpenRun,
  message: AssistantMessage,
  {
    feedback,
    why = firstLine(feedback),
    written,
    isAnswer = written === undefined,
    isThought = false,
  }: Malformed,
  context: Needs,
): Run => {
  if (isThought) return goOn(run, message, feedback, why, context);
  const { maxParseRetries } = context.limits;
  if ((run.corrections.malformed ?? 0) < maxParseRetries) {
    if (written === undefined) return improve(run, 'malformed', message, feedback, context);
    discard(context, run.iteration, message, why);
    return correct(run, 'malformed', feedbackOn(message, 'malformed', feedback));
  }
  if (isAnswer && textOf(message).trim() !== '') return end(run, 'answer', message);
  throw new MillraceError(
    'invalidResponse',
    `The model '${context.model.name}' wrote no action that can be read, ${maxParseRetries + 1} times in a row: ${why}`,
    written === undefined ? {} : { partial: written },
  );
};

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

/** A message that only thinks. What was thought before it stays in sight until there is an action. */
const goOn = (
  run: OpenRun,
  message: AssistantMessage,
  feedback: string,
  why: string,
  context: Needs,
): OpenRun => {
  discard(context, run.iteration, message, why);
  return correct(
    run,
    'thought',
    ...run.feedback,
    message,
    feedbackOn(message, 'thought', feedback),
  );
};

/** An answer without words, which is asked for again once. */
export const remind = (run: OpenRun, message: AssistantMessage, context: Needs): Run => {
  if (run.corrections.emptyAnswer === undefined) {
    return improve(run, 'emptyAnswer', message, 'Your answer was empty. Please answer.', context);
  }
  throw new MillraceError(
    'emptyAnswer',
    `The model '${context.model.name}' answered with nothing, also when it was reminded.`,
  );
};

/** Lets a model that wrote what cannot be read wait before it is asked again: the more often it did, the longer. */
export const paced$ = (
  before: OpenRun,
  after: Run,
  context: Pick<Context, 'limits' | 'scheduler' | 'perform'>,
): Observable<Run> => {
  const misread = ({ corrections: { malformed = 0 } }: OpenRun): number => malformed;
  const isAgain = after.status === 'open' && misread(after) > misread(before);
  const ms = isAgain ? misread(after) * context.limits.parseBackoffMs : 0;
  if (ms === 0) return of(after);
  const rested$ = waited$(context, `${after.iteration}/backoff`, timer(ms, context.scheduler));
  return rested$.pipe(map(() => after));
};

/** Makes a model whose texts cannot be read a little freer from one to the next. */
export const ramped = (
  request: RequestOptions,
  { corrections: { malformed = 0 } }: OpenRun,
  { temperatureRamp }: Limits,
): RequestOptions => {
  if (temperatureRamp === undefined || malformed === 0) return request;
  const { temperature = 1 } = request;
  const raised = Math.min(temperature + temperatureRamp.step * malformed, temperatureRamp.max);
  // 0.2 + 0.4 is 0.6, and not a little more.
  return { ...request, temperature: Math.max(temperature, Math.round(raised * 1e6) / 1e6) };
};

/** A message without the tools that it asks for. */
export const withoutToolUses = (message: AssistantMessage): AssistantMessage => ({
  ...message,
  content: message.content.filter(({ type }) => type !== 'tool_use'),
});

/** Tells whether a message neither says nor asks for anything. */
export const isEmpty = (message: AssistantMessage): boolean =>
  textOf(message).trim() === '' &&
  message.content.every(({ type }) => type === 'text' || type === 'thinking');
