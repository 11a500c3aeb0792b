import { match, rejects } from 'node:assert/strict';
import { APIUserAbortError, type OpenAI } from 'openai';
import type {
  Response,
  ResponseCreateParamsNonStreaming,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses';
import {
  same,
  type Column,
  picture,
  picturesIn,
  reason,
  textsAsked,
  thePicture,
  resultsAsked,
} from '../column.js';
import { openAiOf, weather } from './chat-completions.js';
import type { Stage } from '../stage.js';

const model = 'helper';

type Asked = Omit<ResponseCreateParamsNonStreaming, 'model' | 'stream'>;

/** Streams a response, and reads it with the accumulator of the SDK. */
const ask = (stage: Stage, asked: Asked): Promise<Response> =>
  openAiOf(stage)
    .responses.stream({ ...asked, model })
    .finalResponse();

/** A response that is completed. */
const answers = async (
  stage: Stage,
  answer: string,
  asked: Asked = { input: 'Hi' },
): Promise<Response> => {
  const response = await ask(stage, asked);
  same([response.status, response.error, response.output_text], ['completed', null, answer]);
  return response;
};

const toolsIn = ({ output }: Response) => output.filter((item) => item.type === 'mcp_call');

/** Begins a response that runs without its client, and reads it until its text is this. */
const begun = async (client: OpenAI, stage: Stage, more: Partial<Asked> = {}) => {
  const { id } = await client.responses.create({ model, input: '1?', background: true, ...more });
  stage.held.say('Once ');
  const seen: ResponseStreamEvent[] = [];
  for await (const event of await client.responses.retrieve(id, { stream: true })) {
    seen.push(event);
    if (event.type === 'response.output_text.delta') break;
  }
  return { id, seen };
};

const deltasIn = (events: readonly ResponseStreamEvent[]): string =>
  events.map((it) => (it.type === 'response.output_text.delta' ? it.delta : '')).join('');

/** A response that ends with an approval request. */
const asksIn = ({ id, status, output }: Response) => {
  const [request] = output.filter((item) => item.type === 'mcp_approval_request');
  same([status, request?.name, request?.arguments], ['completed', 'pay', '{"amount":5}']);
  const decision = (approve: boolean, more: { readonly reason?: string } = {}): Asked => ({
    previous_response_id: id,
    input: [
      {
        type: 'mcp_approval_response',
        approval_request_id: request?.id ?? '',
        approve,
        ...more,
      },
    ],
  });
  return decision;
};

export const responses = (version: string): Column => ({
  name: 'openai, responses',
  version,
  cells: {
    good: async (stage) => {
      await answers(stage, 'Hello Ann.');
      return 'text';
    },
    parallel: async (stage) => {
      const response = await answers(stage, 'Rain in both.');
      same(
        toolsIn(response).map(({ output }) => output),
        ['Rain in Oslo.', 'Rain in Rome.'],
      );
      return 'mcp_call';
    },
    toolError: async (stage) => {
      const response = await answers(stage, 'It is broken.');
      same(
        toolsIn(response).map(({ output, error }) => [output, error]),
        [[null, 'The tool failed.']],
      );
      return 'mcp_call.error';
    },
    denial: async (stage) => {
      const response = await answers(stage, 'Then not.');
      same(JSON.stringify(response).includes('secret'), false);
      same(
        [toolsIn(response).map(({ output, error }) => [output, error]), stage.paid],
        [[[null, 'This tool call was denied.']], []],
      );
      return 'mcp_call.error';
    },
    approval: async (stage) => {
      const decision = asksIn(await ask(stage, { input: 'Hi' }));
      same(stage.paid, []);
      const { output } = await answers(stage, 'It is paid.', decision(true));
      same([output[0]?.type, stage.paid], ['mcp_call', [{ amount: 5 }]]);
      return 'mcp_approval_request';
    },
    refusal: async (stage) => {
      const decision = asksIn(await ask(stage, { input: 'Hi' }));
      const response = await answers(stage, 'Then not.', decision(false, { reason }));
      same(
        [toolsIn(response).map(({ output, error }) => [output, error]), stage.paid],
        [[[null, 'This tool call was denied.']], []],
      );
      match(resultsAsked(stage), /Too much/);
      return 'mcp_call.error';
    },
    lateApproval: async (stage) => {
      const { id } = await ask(stage, { input: 'Hi' });
      const decision = asksIn(await openAiOf(stage).responses.retrieve(id));
      await answers(stage, 'It is paid.', decision(true));
      same(stage.paid, [{ amount: 5 }]);
      return 'retrieve';
    },
    suspended: async (stage) => {
      const first = await ask(stage, { input: 'Hi' });
      const [call] = first.output;
      if (call?.type !== 'function_call') throw new Error('There is no function call.');
      same(call.name, 'where');
      await answers(stage, 'You are in Oslo.', {
        previous_response_id: first.id,
        input: [{ type: 'function_call_output', call_id: call.call_id, output: 'Oslo' }],
      });
      match(resultsAsked(stage), /Oslo/);
      return 'function_call';
    },
    clientTool: async (stage) => {
      const tools = [{ type: 'function' as const, strict: false, ...weather }];
      const first = await ask(stage, { input: 'Hi', tools });
      const [call] = first.output;
      if (call?.type !== 'function_call') throw new Error('There is no function call.');
      same([call.name, call.arguments], ['weather', '{"city":"Oslo"}']);
      await answers(stage, 'It rains.', {
        previous_response_id: first.id,
        input: [{ type: 'function_call_output', call_id: call.call_id, output: 'Rain.' }],
        tools,
      });
      match(resultsAsked(stage), /Rain\./);
      return 'function_call';
    },
    regenerate: async (stage) => {
      const { id: previous_response_id } = await answers(stage, 'Hello.');
      await answers(stage, 'One.', { input: '1?', previous_response_id });
      await answers(stage, 'Two.', { input: '1?', previous_response_id });
      same(textsAsked(stage), ['Hi', 'Hello.', '1?']);
      return 'previous_response_id';
    },
    edit: async (stage) => {
      const { id: previous_response_id } = await answers(stage, 'Hello.');
      await answers(stage, 'One.', { input: '1?', previous_response_id });
      await answers(stage, 'Two.', { input: '2?', previous_response_id });
      same(textsAsked(stage), ['Hi', 'Hello.', '2?']);
      return 'previous_response_id';
    },
    picture: async (stage) => {
      await answers(stage, 'A cat.', {
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text: 'What is it?' },
              {
                type: 'input_image',
                detail: 'auto',
                image_url: `data:image/png;base64,${picture}`,
              },
            ],
          },
        ],
      });
      same(picturesIn(stage), thePicture);
      return 'input_image';
    },
    fault: async (stage) => {
      const { status, error } = await ask(stage, { input: 'Hi' });
      same([status, error?.code], ['failed', 'server_error']);
      match(error?.message ?? '', /^The service did not respond as expected\. Please try again\.$/);
      same(stage.errors, ['server']);
      return "status 'failed'";
    },
    interrupt: async (stage) => {
      const client = openAiOf(stage);
      const { id } = await begun(client, stage);
      await client.responses.cancel(id);
      const { status, output_text } = await client.responses.retrieve(id);
      same([status, output_text], ['cancelled', 'Once ']);
      return 'cancel';
    },
    abort: async (stage) => {
      const stream = openAiOf(stage).responses.stream({ model, input: 'Hi' });
      stage.held.say('Once');
      for await (const event of stream) if (event.type === 'response.output_text.delta') break;
      await rejects(stream.done(), APIUserAbortError);
      await stage.held.left();
      return 'abort';
    },
    resume: async (stage) => {
      const client = openAiOf(stage);
      const { id, seen } = await begun(client, stage);
      stage.held.say('more.');
      stage.held.end();
      const rest = await client.responses.retrieve(id, {
        stream: true,
        starting_after: seen.at(-1)?.sequence_number ?? 0,
      });
      for await (const event of rest) seen.push(event);
      const last = seen.at(-1);
      same([last?.type, deltasIn(seen)], ['response.completed', 'Once more.']);
      same((await client.responses.retrieve(id)).output_text, 'Once more.');
      return 'starting_after';
    },
    reload: async (stage) => {
      const first = await answers(stage, 'Hello.');
      const client = openAiOf(stage);
      const { id } = await begun(client, stage, { previous_response_id: first.id });
      const now = await client.responses.retrieve(id);
      same([now.status, now.output_text], ['in_progress', 'Once ']);
      const joined = client.responses.stream({ response_id: id });
      stage.held.say('more.');
      stage.held.end();
      same((await joined.finalResponse()).output_text, 'Once more.');
      same((await client.responses.retrieve(first.id)).output_text, 'Hello.');
      return 'retrieve';
    },
  },
});
