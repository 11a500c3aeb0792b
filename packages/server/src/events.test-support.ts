import {
  type Agent,
  type AgentEvent,
  type CallOptions,
  createAgent,
  type Envelope,
  MillraceError,
  type Context,
  type ModelChunk,
  textOf,
  tool,
} from 'millrace';
import { record, scriptedModel, text, toolCall } from 'millrace/testing';
import { map } from 'rxjs';

/** Makes the event of a call that has begun. */
export const eventOf = <Payload extends Parameters<Context['hooks']['report']>[1]>(
  payload: Payload,
  { callId = 'c', ...rest }: Partial<Envelope> = {},
): Payload & Envelope => ({
  ...payload,
  agent: ['agent'],
  iteration: 1,
  seq: 1,
  at: 0,
  rootId: callId,
  callId,
  ...rest,
});

/** The events of a short call: begun, one word, the reply. */
export const hello = (callId = 'c', options: CallOptions = {}): Promise<readonly AgentEvent[]> =>
  record(createAgent({ model: scriptedModel([text('Hi.')]) }).stream$('?', { callId, ...options }));

/** The error that stands for all that may go wrong. */
export const refused = new MillraceError('rateLimited', 'The key sk-hunter2 is used up.', {
  cause: new Error('sk-hunter2'),
});

/** What each answer of the models below costs. */
const cost: ModelChunk = {
  type: 'usage',
  usage: { inputTokens: 100, outputTokens: 10, cacheReadTokens: 20, cacheWriteTokens: 3 },
};

/** An agent whose tool asks another, whose tool asks a third. Each answer of their models costs the same. */
export const nested = (): Agent => {
  const asking = (name: string, below: () => Agent): Agent =>
    createAgent({
      name,
      model: scriptedModel([cost, toolCall('ask', {}, 't')], [cost, text(`${name}.`)]),
      tools: [
        tool({
          name: 'ask',
          description: 'Asks.',
          run: (_input, context) =>
            below()
              .call$('?', { parent: context })
              .pipe(map((reply) => textOf(reply))),
        }),
      ],
    });
  const third = () => createAgent({ name: 'third', model: scriptedModel([cost, text('third.')]) });
  return asking('first', () => asking('second', third));
};
