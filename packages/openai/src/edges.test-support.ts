import { createAgent, isMillraceError, type Model, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';

export type Json = Readonly<Record<string, unknown>>;
export type Fetch = typeof globalThis.fetch;

/** What a stream comes to: the tools that run with their inputs, or the code of the error, or the reason of the reply. */
export type Outcome = readonly (readonly [name: string, input: unknown])[] | string;

export const sse = (data: unknown): string =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

/** Plays a stream to an agent with tools, and then the stream that ends the call. Fails if tools ran before an error. */
export const outcomeOf = async (
  make: (fetch: Fetch) => Model,
  stream: string,
  done: string,
): Promise<Outcome> => {
  const runs: (readonly [string, unknown])[] = [];
  let count = 0;
  const model = make(() =>
    Promise.resolve(
      new Response(count++ === 0 ? stream : done, {
        headers: { 'content-type': 'text/event-stream' },
      }),
    ),
  );
  const tools = ['pay', 'now', 'delete', 'delete_draft'].map((name) =>
    tool({
      name,
      description: 'Does it.',
      input: jsonSchema({ type: 'object', additionalProperties: true }),
      run: (input) => {
        runs.push([name, input]);
        return 'ok';
      },
    }),
  );
  const ended = await createAgent({ model, tools })
    .call('?')
    .then(
      ({ reason }) => (reason === 'answer' ? runs : reason),
      (error: unknown) => (isMillraceError(error) ? error.code : String(error)),
    );
  if (typeof ended === 'string' && runs.length > 0)
    throw new Error(`Tools ran, and then: ${ended}`);
  return ended;
};

export const settings = { apiKey: 'test', baseURL: 'http://127.0.0.1:9/v1', retry: false } as const;
export const one: Outcome = [['pay', { amount: 1 }]];
export const two: Outcome = [['pay', { amount: 2 }]];
export const none: Outcome = [];
export const [a, b] = ['{"amount":1}', '{"amount":2}'];
