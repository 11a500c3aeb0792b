import { concatMap, delay, from, identity, of, type SchedulerLike } from 'rxjs';
import {
  type AgentOptions,
  createAgent,
  type Model,
  type ModelChunk,
  type ModelRequest,
  textOf,
  tool,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { agentTool } from '../layers/teams/index.js';
import { finish, text, toolCall } from '../testing/index.js';
import { type CallStoreDriver, createCallStore, journal } from './index.js';

/** A model that is a function of what it is asked, so that what is done anew is the same; it counts its requests. */
const modelOf = (
  next: (results: number, request: ModelRequest) => readonly ModelChunk[],
  scheduler: SchedulerLike | undefined,
) => {
  const asked: ModelRequest[] = [];
  const model: Model = {
    name: 'function',
    stream$: (request) => {
      asked.push(request);
      const results = request.messages.filter(({ role }) => role === 'tool').length;
      const chunks = [...next(results, request), finish()];
      return scheduler === undefined
        ? from(chunks)
        : from(chunks).pipe(concatMap((chunk) => of(chunk).pipe(delay(1, scheduler))));
    },
  };
  return { model, asked };
};

const toInput = {
  type: 'object',
  properties: { to: { type: 'string' } },
  required: ['to'],
} as const;

/** What an agent and its helper do in a store: two turns with tools that run at once, and a sub-agent. */
export const payer = (
  driver: CallStoreDriver,
  {
    options = {},
    scheduler,
  }: { readonly options?: Partial<AgentOptions>; readonly scheduler?: SchedulerLike } = {},
) => {
  const effects: string[] = [];
  const effect = (name: string, ms = 0) =>
    tool({
      name,
      description: name,
      input: jsonSchema(toInput),
      run: ({ to }, { idempotencyKey }) => {
        effects.push(`${to} ${idempotencyKey}`);
        const done$ = of(`${name} ${to}.`);
        return done$.pipe(scheduler === undefined ? identity : delay(ms, scheduler));
      },
    });
  const helper = modelOf(
    (results) => (results === 0 ? [toolCall('look', { to: 'dan' })] : [text('Looked.')]),
    scheduler,
  );
  const main = modelOf((results, { messages }) => {
    if (results === 0) {
      const asks = toolCall('helper', { user_prompt: 'Look.' });
      return [text('First '), toolCall('pay', { to: 'ann' }), asks, toolCall('pay', { to: 'bob' })];
    }
    if (results === 1) return [toolCall('pay', { to: 'cat' })];
    const said = messages.flatMap(({ role, content }) =>
      role === 'tool' ? content.map((it) => textOf(it)) : [],
    );
    return [
      text(`${messages.length}: `),
      ...said.flatMap((it, at) => text(at === 0 ? it : ` ${it}`)),
    ];
  }, scheduler);
  const agent = createAgent({
    model: main.model,
    tools: [
      effect('pay', 3),
      agentTool(createAgent({ name: 'helper', model: helper.model, tools: [effect('look', 1)] }), {
        description: 'Helps.',
      }),
    ],
    use: [journal(createCallStore(driver))],
    ...options,
  });
  return { agent, effects, asked: main.asked, helped: helper.asked };
};
