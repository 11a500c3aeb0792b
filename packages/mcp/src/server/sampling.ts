import { type JsonSchema, MillraceError } from 'millrace';
import { isSpecType } from '@modelcontextprotocol/server';
import { of } from 'rxjs';
import type { Question } from './question.js';

/** Content for or of a client's model. */
export type McpSampleContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string };

/** A call of one of the tools, which the client's model wants and the server makes. */
export interface McpSampleToolCall {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
  /** Not validated. */
  readonly input: Readonly<Record<string, unknown>>;
}

/** The result of such a call. A message of the user has one for each call of the message before, and nothing else. */
export interface McpSampleToolResult {
  readonly type: 'tool_result';
  readonly toolUseId: string;
  readonly content: readonly McpSampleContent[];
  readonly isError?: boolean;
}

type Block = McpSampleContent | McpSampleToolCall | McpSampleToolResult;

/** A request to the model of an MCP client. */
export interface McpSampleRequest {
  /** As the id of a form. */
  readonly id?: string;
  /** The prompt of the user, or messages. */
  readonly messages:
    | string
    | readonly {
        readonly role: 'user' | 'assistant';
        readonly content: Block | readonly Block[];
      }[];
  readonly maxTokens: number;
  readonly systemPrompt?: string;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  /** Names of models that would suit, and weights from 0 to 1. The client chooses. */
  readonly modelPreferences?: {
    readonly hints?: readonly { readonly name: string }[];
    readonly costPriority?: number;
    readonly speedPriority?: number;
    readonly intelligencePriority?: number;
  };
  /** Tools that the model may call, for clients with `supports.samplingTools`. Default: none. */
  readonly tools?: readonly {
    readonly name: string;
    readonly description: string;
    readonly inputSchema: JsonSchema;
  }[];
  /** Whether it has to call one. Default: `auto`. */
  readonly toolChoice?: 'auto' | 'required' | 'none';
}

/** The answer of the model of an MCP client. */
export interface McpSample {
  readonly model: string;
  /** The next request repeats it as the message of the assistant. */
  readonly content: readonly (McpSampleContent | McpSampleToolCall)[];
  /** The text of the answer; empty if it has none. */
  readonly text: string;
  /** Calls of the tools of the request. */
  readonly toolCalls: readonly McpSampleToolCall[];
  readonly stopReason?: string;
}

export const sampleOf = ({
  id,
  messages,
  tools,
  toolChoice,
  ...rest
}: McpSampleRequest): Question<McpSample> => {
  const list =
    typeof messages === 'string'
      ? [{ role: 'user', content: { type: 'text', text: messages } }]
      : messages;
  const params: unknown = {
    ...rest,
    messages: list,
    ...(tools !== undefined && {
      tools: tools.map(({ name, description, inputSchema }) => ({
        name,
        description,
        inputSchema: { ...inputSchema, type: 'object' },
      })),
    }),
    ...(toolChoice !== undefined && { toolChoice: { mode: toolChoice } }),
  };
  if (!isSpecType.CreateMessageRequestParams(params)) {
    throw new MillraceError('config', "sample$() needs 'messages' and 'maxTokens'.");
  }
  const names = new Set(tools?.map(({ name }) => name));
  return {
    id,
    feature: tools === undefined && toolChoice === undefined ? 'sampling' : 'samplingTools',
    request: { method: 'sampling/createMessage', params },
    read$: (answer) => of(sampleIn(answer, names)),
  };
};

/** Undefined if it has the wrong shape, or calls a tool that it was not given. */
const sampleIn = (answer: unknown, tools: ReadonlySet<string>): McpSample | undefined => {
  if (!isSpecType.CreateMessageResultWithTools(answer)) return undefined;
  const { model, stopReason } = answer;
  const given = Array.isArray(answer.content) ? answer.content : [answer.content];
  const content = given.flatMap((block) => (block.type === 'tool_result' ? [] : [block]));
  const toolCalls = content.flatMap((block) => (block.type === 'tool_use' ? [block] : []));
  const isKnown = toolCalls.every(({ name }) => tools.has(name));
  if (content.length < given.length || !isKnown) return undefined;
  const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('');
  return { model, content, text, toolCalls, ...(stopReason !== undefined && { stopReason }) };
};
