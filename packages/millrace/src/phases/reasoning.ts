import { askModel, type ModelAnswer, type RequestEvents } from './ask.js';
import {
  afterBackoff,
  afterEmpty,
  afterHalt,
  afterMalformed,
  askAgain,
  hasNoAnswer,
  raiseTemperature,
  withoutToolCalls,
} from './corrections.js';
import { endInterrupted, endStopped } from './limit.js';
import { discardUnlessKept } from './message-builder.js';
import { andThen } from '../flow/eventual.js';
import { withoutTools, withTools } from '../models/request-options.js';
import type { RequestOptions } from '../models/model.js';
import { append, assertAnswered, end, messagesOf, nextIteration, spend } from '../run.js';
import type { OpenRun, Run } from '../run.js';
import type { LoopCall } from '../seams/call.js';
import type { Context, Phase } from '../seams/layer.js';
import { phase } from '../seams/phase.js';
import { toolCallsOf } from '../values/message.js';

type Answered = Extract<ModelAnswer, { status: 'answered' }>;

const eventsOfRequest: RequestEvents = {
  before: (request) => ({ type: 'preReasoning', ...request }),
  chunk: { type: 'reasoningChunk' },
  after: (answered, wish) => ({ type: 'postReasoning', ...answered, ...wish }),
};

/** Asks the model for the next message. A message without tool calls is the answer, and ends the run. */
export const reasoning = (context: Context, call: LoopCall): Phase =>
  phase((before) => {
    assertAnswered(before);
    const run = nextIteration(before);
    const request = { ...optionsOf(run, call), messages: messagesOf(run, context.info) };
    const asked = askModel(context, call, run, eventsOfRequest, String(run.iteration), request);
    return andThen(asked, (response) => {
      const decided = decide(spend(run, response.usage, 'reasoning'), response, context, call);
      // If the run has ended with another answer, observers learn that the message is discarded.
      const after = discardUnlessKept(context, decided, response.message);
      // A delay, if the model is asked again because its text could not be read.
      return afterBackoff(context, call, run, after);
    });
  });

/** A choice that forces a tool covers the first request only: otherwise the model could never answer. */
const optionsOf = (
  run: OpenRun,
  { request: own, toolkit: { current: toolkit }, limits, model }: LoopCall,
): RequestOptions => {
  const { iteration, executed } = run;
  const request = raiseTemperature(own, run, limits);
  if (executed >= limits.maxToolCalls) return withoutTools(request, toolkit, model);
  const { toolChoice, ...rest } = request;
  const forces = toolChoice === 'required' || typeof toolChoice === 'object';
  return withTools(iteration > 1 && forces ? rest : request, toolkit);
};

const decide = (run: OpenRun, response: ModelAnswer, context: Context, call: LoopCall): Run => {
  switch (response.status) {
    case 'vetoed':
      return endStopped(run, context);
    case 'interrupted':
      return endInterrupted(run, context, response.message, response.instead);
    case 'answered': {
      const { message, again, halt, isShown } = response;
      if (again === undefined) return accept(run, response, context, call);
      // The feedback is that of an interceptor; with `halt`, that of a transform, which has ended the message.
      return halt === undefined
        ? askAgain(context, run, 'again', message, again)
        : afterHalt(context, run, message, again, isShown);
    }
  }
};

const accept = (run: OpenRun, response: Answered, context: Context, call: LoopCall): Run => {
  const { finish, stop, malformed } = response;
  // Tool calls of a truncated message may be incomplete.
  const message = finish === 'stop' ? response.message : withoutToolCalls(response.message);
  const asksForTools = toolCallsOf(message).length > 0;
  if (asksForTools) return { ...append(run, message), stopping: stop };
  if (stop && hasNoAnswer(message)) return endStopped(run, context);
  if (stop) return end(run, 'stopped', message, finish);
  if (finish === 'length') return end(run, 'truncated', message, finish);
  if (finish !== 'stop') return end(run, 'refused', message, finish);
  if (malformed !== undefined) return afterMalformed(context, call, run, message, malformed);
  if (hasNoAnswer(message)) return afterEmpty(context, call, run, message);
  // If the interrupt came while interceptors had the message, its text is the reply.
  return context.interruption.current === undefined
    ? end(run, 'answer', message, finish)
    : endInterrupted(run, context, message);
};
