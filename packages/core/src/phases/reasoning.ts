import { map, type Observable, timer } from 'rxjs';
import { ask$, type ModelAnswer, type Stage } from './ask.js';
import { thenMap } from '../flow/contained.js';
import { discard, discardUnlessKept } from './message-builder.js';
import { endInterrupted, endStopped, haltedError } from './limit.js';
import { waited$ } from '../step.js';
import type { AssistantMessage, UserMessage } from '../values/message.js';
import { answerTextOf, textBlock, textOf, toolCallsOf } from '../values/message.js';
import type { Malformed, RequestOptions } from '../models/model.js';
import type { AnswerForm } from '../seams/call.js';
import type { Context } from '../seams/context.js';
import { type Phase, phase } from '../seams/phase.js';
import type { Correction, EndedRun, OpenRun, Run } from '../run.js';
import { append, assertAnswered, correct, end, messagesOf, nextIteration, spend } from '../run.js';
import { withoutTools, withTools } from '../models/request-options.js';
import { MillraceError } from '../values/errors.js';
import type { Validation } from '../values/schema.js';
import type { Limits } from '../flow/deadline.js';

type Needs = Parameters<typeof ask$>[0] &
  Pick<Context, 'interruption' | 'request' | 'output' | 'toolkit'>;
type Answer = Extract<ModelAnswer, { status: 'answered' }>;

const stage: Stage = {
  before: (request) => ({ type: 'preReasoning', ...request }),
  chunk: { type: 'reasoningChunk' },
  after: (answered, wish) => ({ type: 'postReasoning', ...answered, ...wish }),
};

/** Asks the model for the next message. A message without tool calls is the answer, and ends the run. */
export const reasoning = (context: Needs): Phase =>
  phase((before) => {
    assertAnswered(before);
    const run = nextIteration(before);
    const request = { ...optionsOf(run, context), messages: messagesOf(run, context.call) };
    return ask$(context, run, stage, String(run.iteration), request).pipe(
      thenMap((response) => {
        const spent = spend(run, response.usage, 'reasoning');
        const decided = decide(spent, response, context);
        const kept = (then: Run): Run | Observable<Run> =>
          paced(run, discardUnlessKept(context, then, response.message), context);
        return context.output === undefined || decided.status !== 'answer'
          ? kept(decided)
          : read$(spent, decided, context.output, context).pipe(thenMap(kept));
      }),
    );
  });

/** A choice that forces a tool covers the first request only: otherwise the model could never answer. */
const optionsOf = (
  run: OpenRun,
  { request: own, toolkit, limits, model }: Needs,
): RequestOptions => {
  const { iteration, executed } = run;
  const request = ramped(own, run, limits);
  if (executed >= limits.maxToolCalls) return withoutTools(request, toolkit, model);
  const { toolChoice, ...rest } = request;
  const forces = toolChoice === 'required' || typeof toolChoice === 'object';
  return withTools(iteration > 1 && forces ? rest : request, toolkit);
};

const decide = (run: OpenRun, response: ModelAnswer, context: Needs): Run => {
  switch (response.status) {
    case 'vetoed':
      return endStopped(run, context);
    case 'interrupted':
      return endInterrupted(run, context, response.message, response.instead);
    case 'answered':
      if (response.again === undefined) return accept(run, response, context);
      return response.halt === undefined
        ? improve(run, 'again', response.message, response.again, context)
        : resume(run, response, response.again, context);
  }
};

const accept = (run: OpenRun, response: Answer, context: Needs): Run => {
  const { finish, stop, malformed } = response;
  // Tool calls of a truncated message may be incomplete.
  const message = finish === 'stop' ? response.message : withoutToolCalls(response.message);
  const asksForTools = toolCallsOf(message).length > 0;
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

const read$ = (
  run: OpenRun,
  decided: EndedRun,
  output: AnswerForm,
  context: Needs,
): Observable<Run> => {
  const { answer } = decided;
  return waited$(context, `${run.iteration}/output`, output.read$(answerTextOf(answer))).pipe(
    map((read) => {
      if (read === undefined) return endInterrupted(run, context, answer);
      reportReading(run, textOf(answer), read, context);
      return read.valid
        ? { ...decided, output: read.value }
        : reshape(run, answer, read.problems, context);
    }),
  );
};

const reportReading = (
  { iteration }: OpenRun,
  before: string,
  read: Validation,
  { hooks }: Pick<Context, 'hooks'>,
): void => {
  if (read.valid && read.repaired !== undefined) {
    hooks.report(iteration, { type: 'repaired', before, after: JSON.stringify(read.repaired) });
  }
  const { warnings = [] } = read.valid ? {} : read;
  for (const message of warnings) hooks.report(iteration, { type: 'warning', message });
};

type CorrectionNeeds = Pick<Context, 'hooks' | 'model' | 'limits'>;

/** Maximum number of corrections in a row for answers that do not match the output schema. */
const maxOutputCorrections = 2;

/** Maximum number of messages in a row that a transform may end with feedback. */
const maxHalts = 2;

const improve = (
  run: OpenRun,
  kind: Correction,
  message: AssistantMessage,
  why: string,
  context: CorrectionNeeds,
  isShown?: boolean,
): OpenRun => {
  discard(context, run.iteration, message, why, isShown);
  const rejected = withoutToolCalls(message);
  const feedback = feedbackOn(message, kind, why);
  return correct(run, kind, ...(isEmpty(rejected) ? [] : [rejected]), feedback);
};

const feedbackOn = ({ id }: AssistantMessage, kind: Correction, why: string): UserMessage => ({
  id: `${id}/${kind}`,
  role: 'user',
  content: [textBlock(why)],
});

const resume = (
  run: OpenRun,
  { message, isShown }: Extract<ModelAnswer, { status: 'answered' }>,
  why: string,
  context: CorrectionNeeds,
): OpenRun => {
  if ((run.corrections.halted ?? 0) < maxHalts) {
    return improve(run, 'halted', message, why, context, isShown);
  }
  throw haltedError(message, why);
};

const reshape = (
  run: OpenRun,
  message: AssistantMessage,
  problems: readonly string[],
  context: CorrectionNeeds,
): OpenRun => {
  const why = `Your answer must be JSON of the requested schema, with no text around it:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;
  if ((run.corrections.output ?? 0) < maxOutputCorrections) {
    return improve(run, 'output', message, why, context);
  }
  throw new MillraceError(
    'invalidResponse',
    `The model '${context.model.name}' gave no valid output, ${maxOutputCorrections + 1} times in a row: ${problems.join('; ')}`,
    { partial: textOf(message) },
  );
};

const repair = (
  run: OpenRun,
  message: AssistantMessage,
  {
    feedback,
    why = firstLine(feedback),
    written,
    isAnswer = written === undefined,
    isThought = false,
  }: Malformed,
  context: CorrectionNeeds,
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
    `The model '${context.model.name}' wrote an action that could not be parsed, ${maxParseRetries + 1} times in a row: ${why}`,
    written === undefined ? {} : { partial: written },
  );
};

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

/** A message that only thinks. Earlier thoughts stay in requests until there is an action. */
const goOn = (
  run: OpenRun,
  message: AssistantMessage,
  feedback: string,
  why: string,
  context: CorrectionNeeds,
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

const remind = (run: OpenRun, message: AssistantMessage, context: CorrectionNeeds): Run => {
  if (run.corrections.emptyAnswer === undefined) {
    return improve(run, 'emptyAnswer', message, 'Your answer was empty. Please answer.', context);
  }
  throw new MillraceError(
    'emptyAnswer',
    `The model '${context.model.name}' returned nothing, even after a reminder.`,
  );
};

/** Waits before asking again after an unreadable action, longer each time in a row. */
const paced = (
  before: OpenRun,
  after: Run,
  context: Pick<Context, 'limits' | 'scheduler' | 'perform'>,
): Run | Observable<Run> => {
  const misread = ({ corrections: { malformed = 0 } }: OpenRun): number => malformed;
  const isAgain = after.status === 'open' && misread(after) > misread(before);
  const ms = isAgain ? misread(after) * context.limits.parseBackoffMs : 0;
  if (ms === 0) return after;
  const rested$ = waited$(context, `${after.iteration}/backoff`, timer(ms, context.scheduler));
  return rested$.pipe(map(() => after));
};

/** Raises the temperature with each unreadable action in a row. */
const ramped = (
  request: RequestOptions,
  { corrections: { malformed = 0 } }: OpenRun,
  { temperatureRamp }: Limits,
): RequestOptions => {
  if (temperatureRamp === undefined || malformed === 0) return request;
  const { temperature = 1 } = request;
  const raised = Math.min(temperature + temperatureRamp.step * malformed, temperatureRamp.max);
  // Rounded: 0.2 + 0.4 is 0.6.
  return { ...request, temperature: Math.max(temperature, Math.round(raised * 1e6) / 1e6) };
};

const withoutToolCalls = (message: AssistantMessage): AssistantMessage => ({
  ...message,
  content: message.content.filter(({ type }) => type !== 'tool_call'),
});

const isEmpty = (message: AssistantMessage): boolean =>
  textOf(message).trim() === '' &&
  message.content.every(({ type }) => type === 'text' || type === 'thinking');
