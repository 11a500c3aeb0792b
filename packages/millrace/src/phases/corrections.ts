import { map, timer } from 'rxjs';
import type { Eventual } from '../flow/eventual.js';
import type { Limits } from '../flow/deadline.js';
import type { Malformed, RequestOptions } from '../models/model.js';
import { correct, end, type OpenRun, type Run } from '../run.js';
import type { LoopCall } from '../seams/call.js';
import type { Context } from '../seams/layer.js';
import { waited$ } from '../step.js';
import { MillraceError } from '../values/errors.js';
import {
  type AssistantMessage,
  textBlock,
  textOf,
  toolCallsOf,
  type UserMessage,
} from '../values/message.js';
import { haltedError } from './limit.js';
import { discard } from './message-builder.js';

type Needs = Pick<Context, 'hooks'>;
type Asked = Pick<LoopCall, 'limits' | 'model'>;

/**
 * Asks the model again: its message is discarded, and the next request shows it with the reason. `kind` counts how often this happened
 * since the last message that was kept: `run.corrections[kind]`.
 */
export const askAgain = (
  { hooks }: Pick<Context, 'hooks'>,
  run: OpenRun,
  kind: string,
  message: AssistantMessage,
  why: string,
  isShown?: boolean,
): OpenRun => {
  discard({ hooks }, run.iteration, message, why, isShown);
  const rejected = withoutToolCalls(message);
  const feedback = feedbackOn(message, kind, why);
  return correct(run, kind, ...(hasNoAnswer(rejected) ? [] : [rejected]), feedback);
};

const feedbackOn = ({ id }: AssistantMessage, kind: string, why: string): UserMessage => ({
  id: `${id}/${kind}`,
  role: 'user',
  content: [textBlock(why)],
});

/** Maximum number of messages in a row that a transform may end with feedback. */
const maxHalts = 2;

/** After a message that a transform ended with feedback. */
export const afterHalt = (
  context: Needs,
  run: OpenRun,
  message: AssistantMessage,
  why: string,
  isShown: boolean,
): OpenRun => {
  if ((run.corrections['halted'] ?? 0) === maxHalts) throw haltedError(message, why);
  return askAgain(context, run, 'halted', message, why, isShown);
};

/** After text in which no action could be read. */
export const afterMalformed = (
  context: Needs,
  call: Asked,
  run: OpenRun,
  message: AssistantMessage,
  malformed: Malformed,
): Run => {
  const { feedback, why = firstLine(feedback), written } = malformed;
  if (malformed.isThought === true) return keepThinking(context, run, message, feedback, why);
  const { maxParseRetries } = call.limits;
  if (misread(run) < maxParseRetries) {
    if (written === undefined) return askAgain(context, run, 'malformed', message, feedback);
    // The feedback quotes what was written.
    discard(context, run.iteration, message, why);
    return correct(run, 'malformed', feedbackOn(message, 'malformed', feedback));
  }
  const { isAnswer = written === undefined } = malformed;
  if (isAnswer && textOf(message).trim() !== '') return end(run, 'answer', message);
  throw new MillraceError(
    'invalidResponse',
    `The model '${call.model.name}' wrote an action that could not be parsed, ${maxParseRetries + 1} times in a row: ${why}`,
    written === undefined ? {} : { partial: written },
  );
};

const misread = ({ corrections }: OpenRun): number => corrections['malformed'] ?? 0;

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

/** After a message that only thinks. Earlier thoughts stay in requests until there is an action. */
const keepThinking = (
  context: Needs,
  run: OpenRun,
  message: AssistantMessage,
  feedback: string,
  why: string,
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

/** After an empty message, the first in a row. */
export const afterEmpty = (
  context: Needs,
  call: Asked,
  run: OpenRun,
  message: AssistantMessage,
): OpenRun => {
  if (run.corrections['emptyAnswer'] === undefined) {
    return askAgain(context, run, 'emptyAnswer', message, 'Your answer was empty. Please answer.');
  }
  throw new MillraceError(
    'emptyAnswer',
    `The model '${call.model.name}' returned nothing, even after a reminder.`,
  );
};

/** Waits before asking again after an unreadable action, longer each time in a row. */
export const afterBackoff = (
  context: Pick<Context, 'perform' | 'scheduler'>,
  { limits }: Pick<LoopCall, 'limits'>,
  before: OpenRun,
  after: Run,
): Eventual<Run> => {
  const isAgain = after.status === 'open' && misread(after) > misread(before);
  const ms = isAgain ? misread(after) * limits.parseBackoffMs : 0;
  if (ms === 0) return after;
  const rested$ = waited$(context, `${after.iteration}/backoff`, timer(ms, context.scheduler));
  return rested$.pipe(map(() => after));
};

/** Raises the temperature with each unreadable action in a row. */
export const raiseTemperature = (
  request: RequestOptions,
  run: OpenRun,
  { temperatureRamp }: Limits,
): RequestOptions => {
  if (temperatureRamp === undefined || misread(run) === 0) return request;
  const { temperature = 1 } = request;
  const raised = Math.min(temperature + temperatureRamp.step * misread(run), temperatureRamp.max);
  // Rounded: 0.2 + 0.4 is 0.6.
  return { ...request, temperature: Math.max(temperature, Math.round(raised * 1e6) / 1e6) };
};

export const withoutToolCalls = (message: AssistantMessage): AssistantMessage =>
  toolCallsOf(message).length === 0
    ? message
    : { ...message, content: message.content.filter(({ type }) => type !== 'tool_call') };

/** Whether a message has neither text nor media. */
export const hasNoAnswer = (message: AssistantMessage): boolean =>
  textOf(message).trim() === '' &&
  message.content.every(({ type }) => type === 'text' || type === 'thinking');
