import { match, rejects } from 'node:assert/strict';
import OpenAI from 'openai';
import type { ChatCompletionMessageParam, ChatCompletionTool } from 'openai/resources';
import {
  same,
  type Column,
  picture,
  picturesIn,
  textsAsked,
  thePicture,
  resultsAsked,
} from '../column.js';
import type { Stage } from '../stage.js';

const model = 'helper';

/** The client of the OpenAI API, over a port. */
export const openAiOf = ({ url }: Pick<Stage, 'url'>): OpenAI =>
  new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0 });

export const weather = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
} as const;

const user = (content: string): ChatCompletionMessageParam => ({ role: 'user', content });

/** Streams an answer, and reads it with the accumulator of the SDK. */
const ask = async (
  stage: Stage,
  messages: ChatCompletionMessageParam[],
  tools?: ChatCompletionTool[],
) => {
  const stream = openAiOf(stage).chat.completions.stream({
    model,
    messages,
    ...(tools && { tools }),
  });
  const { choices } = await stream.finalChatCompletion();
  const [choice] = choices;
  if (choice === undefined) throw new Error('There is no choice.');
  return choice;
};

/** An answer without tool calls for the client. */
const answers = async (
  stage: Stage,
  answer: string,
  messages: ChatCompletionMessageParam[] = [user('Hi')],
): Promise<ChatCompletionMessageParam[]> => {
  const { message, finish_reason } = await ask(stage, messages);
  same([message.content, finish_reason, message.tool_calls ?? []], [answer, 'stop', []]);
  return [...messages, { role: 'assistant', content: message.content }];
};

const noApprovals = 'no approvals';

export const chatCompletions = (version: string): Column => ({
  name: 'openai, chat completions',
  version,
  cells: {
    good: async (stage) => {
      await answers(stage, 'Hello Ann.');
      return 'text';
    },
    parallel: async (stage) => {
      await answers(stage, 'Rain in both.');
      return 'answer, tools hidden';
    },
    toolError: async (stage) => {
      await answers(stage, 'It is broken.');
      return 'answer, tools hidden';
    },
    denial: async (stage) => {
      await answers(stage, 'Then not.');
      same(stage.paid, []);
      return 'answer, tools hidden';
    },
    approval: noApprovals,
    refusal: noApprovals,
    lateApproval: noApprovals,
    suspended: async (stage) => {
      const { message, finish_reason } = await ask(stage, [user('Hi')]);
      const [toolCall] = message.tool_calls ?? [];
      same(
        [finish_reason, toolCall?.type === 'function' && toolCall.function.name],
        ['tool_calls', 'where'],
      );
      const result = { role: 'tool', tool_call_id: toolCall?.id ?? '', content: 'Oslo' } as const;
      await answers(stage, 'You are in Oslo.', [user('Hi'), message, result]);
      match(resultsAsked(stage), /Oslo/);
      return 'tool_calls';
    },
    clientTool: async (stage) => {
      const asked: unknown[] = [];
      const runner = openAiOf(stage).chat.completions.runTools({
        model,
        stream: true,
        messages: [user('Hi')],
        tools: [
          {
            type: 'function',
            function: {
              ...weather,
              parse: JSON.parse,
              function: (input: { readonly city: string }) => {
                asked.push(input);
                return `It rains in ${input.city}.`;
              },
            },
          },
        ],
      });
      same(await runner.finalContent(), 'It rains.');
      same(asked, [{ city: 'Oslo' }]);
      match(resultsAsked(stage), /It rains in Oslo\./);
      return 'runTools';
    },
    regenerate: async (stage) => {
      const first = await answers(stage, 'Hello.');
      const question = [...first, user('1?')];
      await answers(stage, 'One.', question);
      await answers(stage, 'Two.', question);
      same(textsAsked(stage), ['Hi', 'Hello.', '1?']);
      return 'messages again';
    },
    edit: async (stage) => {
      const first = await answers(stage, 'Hello.');
      await answers(stage, 'One.', [...first, user('1?')]);
      await answers(stage, 'Two.', [...first, user('2?')]);
      same(textsAsked(stage), ['Hi', 'Hello.', '2?']);
      return 'other messages';
    },
    picture: async (stage) => {
      const url = `data:image/png;base64,${picture}`;
      const content = [
        { type: 'text', text: 'What is it?' },
        { type: 'image_url', image_url: { url } },
      ] as const;
      await answers(stage, 'A cat.', [{ role: 'user', content: [...content] }]);
      same(picturesIn(stage), thePicture);
      return 'image_url';
    },
    fault: async (stage) => {
      const failed = openAiOf(stage).chat.completions.create({ model, messages: [user('Hi')] });
      await rejects(failed, (error) => {
        if (!(error instanceof OpenAI.APIError)) return false;
        match(error.message, /^500 The service did not respond as expected\. Please try again\.$/);
        same(error.code, 'server');
        return true;
      });
      same(stage.errors, ['server']);
      return 'APIError';
    },
    interrupt: 'a completion has no id to stop it by; disconnecting cuts the call',
    abort: async (stage) => {
      const stream = openAiOf(stage).chat.completions.stream({ model, messages: [user('Hi')] });
      stage.held.say('Once');
      for await (const { choices } of stream) if (choices[0]?.delta.content === 'Once') break;
      await rejects(stream.done(), OpenAI.APIUserAbortError);
      await stage.held.left();
      return 'abort';
    },
    resume: 'chunks have no sequence numbers',
    reload: 'the client keeps the conversation',
  },
});
