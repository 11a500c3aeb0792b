import { type Part, Role, type StreamResponse } from '@a2a-js/sdk';
import { ClientFactory, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { HttpAgent } from '@ag-ui/client';
import { isRecord, parsedJson } from 'millrace/values';
import * as ai from 'ai';
import OpenAI from 'openai';
import { State } from './clients/ai-sdk.js';

/** A person who chats, at a server. */
export interface Person {
  readonly url: string;
  readonly user: string;
}

/** A tool call that waits, as a client shows it. */
export interface Shown {
  readonly tool: unknown;
  readonly input: unknown;
}

/** A conversation after the question. */
export interface Open {
  /** The tool call that the client may answer. */
  readonly shown: Shown | undefined;
  /** The id of the session in the store of a server without users. */
  readonly session: string;
  /** Brings the result of a tool call. Returns the answer, or `refused` and why. */
  readonly bring: (by: Person, id: string, result: unknown) => Promise<string>;
}

export interface ApprovingClient {
  readonly name: string;
  readonly ask: (by: Person) => Promise<Open>;
  /** How a result is refused: with a status, or 200 if an error ends the stream. */
  readonly refused: Readonly<Record<'forProgram' | 'unknown' | 'ofOthers', string>>;
}

/** The `fetch` of a person, which remembers the status of the last response. */
const fetchOf = ({ user }: Person) => {
  let status = 0;
  const send = async (at: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set('x-user', user);
    const response = await fetch(at, { ...init, headers });
    ({ status } = response);
    return response;
  };
  return { send, refused: () => `refused ${status}` };
};

const textOf = (result: unknown): string =>
  typeof result === 'string' ? result : JSON.stringify(result);

/** `useChat` without React. */
class Chat extends ai.AbstractChat<ai.UIMessage> {
  constructor({ messages = [], ...init }: ai.ChatInit<ai.UIMessage>) {
    super({ ...init, state: new State(messages) });
  }
}

const aiSdk: ApprovingClient = {
  name: 'the AI SDK',
  refused: { forProgram: 'refused 409', unknown: 'refused 409', ofOthers: 'refused 409' },
  ask: async (by) => {
    const chatOf = (person: Person, messages: ai.UIMessage[] = []) => {
      const { send, refused } = fetchOf(person);
      const transport = new ai.DefaultChatTransport({ api: `${person.url}/api/chat`, fetch: send });
      return { chat: new Chat({ id: 'chat-1', transport, messages }), refused };
    };
    const { chat: asked } = chatOf(by);
    await asked.sendMessage({ text: 'Roll.' });
    const parts = asked.lastMessage?.parts ?? [];
    const waits = parts
      .filter((part) => ai.isDataUIPart(part))
      .find((part) => part.type === 'data-suspended');
    const called = parts.find((part) => ai.isToolUIPart(part));
    return {
      session: 'chat-1',
      shown: waits && called && { tool: ai.getToolName(called), input: called.input },
      bring: async (brings, localId, output) => {
        // What waits is in the messages of the client, whatever the server has shown.
        const toolCallId = `m/${localId}`;
        const step: ai.UIMessage['parts'] = [
          { type: 'step-start' },
          { type: 'tool-wait', toolCallId, state: 'input-available', input: {} },
          { type: 'data-suspended', data: { toolCallId, toolName: 'wait', localId } },
        ];
        const isShown = isRecord(waits?.data) && waits.data['localId'] === localId;
        const messages = isShown
          ? asked.messages
          : [...asked.messages.slice(0, 1), { id: 'm', role: 'assistant' as const, parts: step }];
        const { chat, refused } = chatOf(brings, messages);
        const tool = isShown && called ? ai.getToolName(called) : 'wait';
        const id = isShown && called ? called.toolCallId : toolCallId;
        await chat.addToolOutput({ tool, toolCallId: id, output });
        await chat.sendMessage();
        const said = chat.lastMessage?.parts.findLast(({ type }) => type === 'text');
        return chat.error === undefined && said?.type === 'text' ? said.text : refused();
      },
    };
  },
};

const agUi: ApprovingClient = {
  name: 'AG-UI',
  refused: { forProgram: 'refused 409', unknown: 'refused 409', ofOthers: 'refused 409' },
  ask: async (by) => {
    const agentOf = (person: Person, initialMessages: HttpAgent['messages']) => {
      const { send, refused } = fetchOf(person);
      const url = `${person.url}/api/ag-ui`;
      const agent = new HttpAgent({ url, threadId: 'chat-1', initialMessages, fetch: send });
      return { agent, refused };
    };
    const { agent: asked } = agentOf(by, [{ id: 'q', role: 'user', content: 'Roll.' }]);
    let waits: unknown;
    await asked.runAgent(
      {},
      {
        onCustomEvent: ({ event }) => {
          if (event.name === 'millrace.suspended') waits = event.value;
        },
      },
    );
    const made = asked.messages.findLast((message) => message.role === 'assistant');
    const [call] = made?.toolCalls ?? [];
    return {
      session: 'chat-1',
      shown:
        waits === undefined
          ? undefined
          : { tool: call?.function.name, input: parsedJson(call?.function.arguments ?? '') },
      bring: async (brings, id, result) => {
        const message = made ?? { id: 'm', role: 'assistant' };
        const toolCallId = `${message.id}/${id}`;
        const { agent, refused } = agentOf(brings, [
          ...asked.messages.slice(0, 1),
          {
            ...message,
            toolCalls: [
              { id: toolCallId, type: 'function', function: { name: 'wait', arguments: '{}' } },
            ],
          },
          { id: 'r', role: 'tool', toolCallId, content: textOf(result) },
        ]);
        let failed = false;
        await agent
          .runAgent({}, { onRunErrorEvent: () => void (failed = true) })
          .catch(() => (failed = true));
        const last = agent.messages.at(-1);
        if (failed || last?.role !== 'assistant') return refused();
        return String(last.content);
      },
    };
  },
};

export const openAiOf = (person: Person) => {
  const { send, refused } = fetchOf(person);
  const baseURL = `${person.url}/v1`;
  return { client: new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0, fetch: send }), refused };
};

const model = 'helper';

const responses: ApprovingClient = {
  name: 'the OpenAI SDK, responses',
  refused: { forProgram: 'refused 409', unknown: 'refused 400', ofOthers: 'refused 404' },
  ask: async (by) => {
    const { client } = openAiOf(by);
    const asked = await client.responses.create({ model, input: 'Roll.' });
    const call = asked.output.find((item) => item.type === 'function_call');
    return {
      session: asked.conversation?.id ?? '',
      shown: call && { tool: call.name, input: parsedJson(call.arguments) },
      bring: async (brings, call_id, result) => {
        const next = openAiOf(brings);
        const output = textOf(result);
        return next.client.responses
          .create({
            model,
            previous_response_id: asked.id,
            input: [{ type: 'function_call_output', call_id, output }],
          })
          .then(({ output_text }) => output_text)
          .catch(next.refused);
      },
    };
  },
};

const a2a: ApprovingClient = {
  name: 'A2A',
  refused: { forProgram: 'refused', unknown: 'refused', ofOthers: 'refused' },
  ask: async (by) => {
    const clientOf = (person: Person) => {
      const { send } = fetchOf(person);
      const transports = [new JsonRpcTransportFactory({ fetchImpl: send })];
      return new ClientFactory({ transports }).createFromUrl(person.url);
    };
    const client = await clientOf(by);
    const asked = await readTask(client.sendMessageStream(saying(textPart('Roll.'))));
    return {
      session: asked.contextId,
      shown: asked.waits && {
        tool: asked.waits['tool'],
        input: isRecord(asked.waits['request']) ? asked.waits['request']['input'] : undefined,
      },
      bring: async (brings, toolCallId, result) => {
        const next = await clientOf(brings);
        const message = saying(dataPart({ toolCallId, result }), asked.id);
        return readTask(next.sendMessageStream(message))
          .then(({ answer }) => answer)
          .catch(() => 'refused');
      },
    };
  },
};

let count = 0;
const saying = (part: Part, taskId = '') => ({
  ...{ tenant: '', configuration: undefined, metadata: undefined },
  message: {
    ...{ contextId: '', taskId, role: Role.ROLE_USER, parts: [part], metadata: undefined },
    ...{ messageId: `m${(count += 1)}`, extensions: [], referenceTaskIds: [] },
  },
});

const common = { filename: '', metadata: undefined };
const textPart = (value: string): Part => ({
  ...{ ...common, content: { $case: 'text', value }, mediaType: 'text/plain' },
});
const dataPart = (value: unknown): Part => ({
  ...{ ...common, content: { $case: 'data', value }, mediaType: 'application/json' },
});

/** The task at the end of a stream. */
const readTask = async (stream: AsyncIterable<StreamResponse>) => {
  let [id, contextId, answer] = ['', '', ''];
  let waits: Readonly<Record<string, unknown>> | undefined;
  for await (const { payload } of stream) {
    if (payload?.$case === 'task') ({ id, contextId } = payload.value);
    if (payload?.$case === 'artifactUpdate') {
      const { artifact, append } = payload.value;
      const text = (artifact?.parts ?? [])
        .map(({ content }) => (content?.$case === 'text' ? content.value : ''))
        .join('');
      answer = append ? answer + text : text;
    }
    if (payload?.$case === 'statusUpdate') {
      for (const { content } of payload.value.status?.message?.parts ?? []) {
        if (content?.$case === 'data' && isRecord(content.value)) waits = content.value;
      }
    }
  }
  return { id, contextId, answer, waits };
};

export const approvingClients: readonly ApprovingClient[] = [aiSdk, agUi, responses, a2a];
