import { EventSchemas } from '@ag-ui/core/schemas';
import {
  type AbstractAgent,
  type AGUIEvent,
  type BaseEvent,
  HttpAgent,
  type Message,
  type RunAgentParameters,
  verifyEvents,
} from '@ag-ui/client';
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  readUIMessageStream,
  safeValidateUIMessages,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
} from 'ai';
import type { AgentEvent } from 'millrace';
import { isRecord } from 'millrace/values';
import { from, lastValueFrom, type OperatorFunction, reduce } from 'rxjs';
import { type AiSdkVersion, toServerSentEvents, toUiMessageStream } from './index.js';

/** What a reader of the AI SDK ended up with. */
export interface ReadMessage {
  readonly message: UIMessage;
  readonly errors: readonly string[];
}

/** Reads chunks as the AI SDK's client does; what is wrong with them is an error that it finds. */
export const readAsAiSdk = async (chunks: readonly object[]): Promise<ReadMessage> => {
  const body = await textOf(chunks);
  const transport = new DefaultChatTransport({
    fetch: () => Promise.resolve(new Response(body)),
  });
  const stream = await transport.sendMessages({
    trigger: 'submit-message',
    chatId: '1',
    messageId: undefined,
    messages: [],
    abortSignal: undefined,
  });
  return readStream(stream);
};

const textOf = (values: readonly object[]): Promise<string> =>
  lastValueFrom(
    from(values).pipe(
      toServerSentEvents(),
      reduce((all, it) => all + it, ''),
    ),
  );

/** Reads a stream of chunks to its end. */
export const readStream = async (stream: ReadableStream<UIMessageChunk>): Promise<ReadMessage> => {
  const errors: string[] = [];
  let message: UIMessage = { id: '', role: 'assistant', parts: [] };
  const onError = (error: unknown) => errors.push(String(error));
  for await (const state of readUIMessageStream({ stream, onError })) message = state;
  return { message, errors };
};

/** Makes chunks for the AI SDK that is installed. */
export const forInstalled = async (): Promise<OperatorFunction<AgentEvent, object>> =>
  toUiMessageStream({ target: await installed() });

/** The chunks that the AI SDK's own schema refuses. */
export const refusedChunks = async (chunks: readonly object[]): Promise<readonly object[]> => {
  const { validate } = uiMessageChunkSchema();
  const refused: object[] = [];
  for (const chunk of chunks) {
    if ((await validate?.(chunk))?.success !== true) refused.push(chunk);
  }
  return refused;
};

/** The version of the AI SDK that reads here, told by what it reads. */
export const installed = async (): Promise<AiSdkVersion> =>
  (await refusedChunks([{ type: 'reset-step' }])).length === 0 ? 7 : 6;

/** Whether the AI SDK takes the message back, as it does when it is sent or stored. */
export const isValidMessage = async (message: UIMessage): Promise<boolean> =>
  (await safeValidateUIMessages({ messages: [message] })).success;

/** The answer in a message: the text of its last step that is not void. */
export const answerIn = ({ parts }: UIMessage): string => {
  const voided = new Set(
    parts.flatMap((part) =>
      part.type === 'data-discarded' && isRecord(part.data) ? [part.data['messageId']] : [],
    ),
  );
  const lastStep = parts.findLastIndex(({ type }) => type === 'step-start');
  return parts
    .slice(lastStep + 1)
    .map((part) =>
      part.type === 'text' && !voided.has(part.providerMetadata?.['millrace']?.['messageId'])
        ? part.text
        : '',
    )
    .join('');
};

/** What somebody sees of a message: a line a part. */
export const linesOf = ({ parts }: UIMessage): readonly string[] =>
  parts.map((part) => {
    if (part.type === 'text' || part.type === 'reasoning') return `${part.type}: ${part.text}`;
    if (isToolUIPart(part)) {
      const said = part.state === 'output-available' ? part.output : part.errorText;
      return `${getToolName(part)} ${JSON.stringify(part.input)} ${part.state}: ${JSON.stringify(said)}`;
    }
    return 'data' in part ? `${part.type}: ${JSON.stringify(part.data)}` : part.type;
  });

/** What somebody sees of a conversation: a line a message, the first one left out. */
export const linesOfRun = ({ messages, events, outcome }: ReadRun): readonly string[] => [
  ...messages.slice(1).map((message) => {
    const who = 'subagentRunId' in message ? `${message.role} below` : message.role;
    const asked = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
    const tools = asked.map(({ function: it }) => ` [${it.name} ${it.arguments}]`);
    return `${who}: ${JSON.stringify(message.content ?? '')}${tools.join('')}`;
  }),
  [String(events.at(-1)?.type), ...(outcome === undefined ? [] : [outcome])].join(' '),
];

/** What an AG-UI client ended up with. */
export interface ReadRun {
  readonly messages: readonly Message[];
  readonly events: readonly BaseEvent[];
  readonly errors: readonly string[];
  readonly result: unknown;
  readonly outcome: string | undefined;
}

/** Reads AG-UI events as its client does, with the verifier, the enforcement of the schema, and the reducer. */
export const readAsAgUi = async (events: readonly object[]): Promise<ReadRun> => {
  const headers = { 'content-type': 'text/event-stream' };
  const body = await textOf(events);
  const fetch = () => Promise.resolve(new Response(body, { headers }));
  return watched(new HttpAgent({ url: 'http://127.0.0.1/', fetch }));
};

/** Runs an AG-UI client, and tells what it ended up with. */
export const watched = async (
  agent: AbstractAgent,
  parameters: RunAgentParameters = {},
): Promise<ReadRun> => {
  const errors: string[] = [];
  const events: BaseEvent[] = [];
  let outcome: string | undefined;
  const ended = await agent.runAgent(parameters, {
    onEvent: ({ event }) => void events.push(event),
    onRunFinishedEvent: (params) => {
      ({ outcome } = params);
    },
    onRunErrorEvent: ({ event }) => void errors.push(event.message),
    onRunFailed: ({ error }) => void errors.push(`failed: ${String(error)}`),
  });
  const result: unknown = ended.result;
  return { messages: agent.messages, events, errors, result, outcome };
};

/** What the client's verifier and schema say of the events: nothing, when they are well-formed. */
export const complaintsOf = (events: readonly AGUIEvent[]): readonly string[] => {
  const complaints: string[] = [];
  // The client brings an RxJS of its own, whose types are not ours.
  verifyEvents()(from(events) as never).subscribe({
    error: (error: unknown) => complaints.push(String(error)),
  });
  for (const event of events) {
    const parsed = EventSchemas.safeParse(event);
    if (!parsed.success) complaints.push(`${JSON.stringify(event)}: ${parsed.error.message}`);
  }
  return complaints;
};

/** The answer in a conversation: what the outermost agent said last that is not void. */
export const answerAmong = ({ messages, events }: ReadRun): string => {
  const voided = new Set(
    events.map(({ name, value }) =>
      name === 'millrace.discarded' && isRecord(value) ? value['messageId'] : undefined,
    ),
  );
  const said = messages.findLast(
    (message) =>
      message.role === 'assistant' &&
      message.content !== undefined &&
      message.subagentRunId === undefined &&
      !voided.has(message.id),
  );
  return typeof said?.content === 'string' ? said.content : '';
};
