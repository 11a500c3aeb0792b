import { type ContentBlock, MillraceError, textBlock } from 'millrace';
import { defined, isRecord } from 'millrace/values';
import {
  type GetPromptResult,
  type Prompt,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import { map, type Observable } from 'rxjs';
import type { McpCompletion } from './completion.js';
import { blockOf, lengthOfAll } from './blocks.js';
import { given$, type Given } from './lists.js';
import type { McpRequest } from './mcp-client.js';

/** An argument of a prompt: a string that the user enters. */
export interface McpPromptArgument {
  readonly name: string;
  readonly description?: string;
  /** Default: false. */
  readonly required?: boolean;
  /** Suggestions for the user. Default: none. */
  // eslint-disable-next-line rxjs-x/finnish -- Often a plain list.
  readonly complete?: McpCompletion;
}

/** A message of a prompt: a string of the user, or content of either side. */
export type McpPromptMessage =
  | string
  | {
      readonly role: 'user' | 'assistant';
      readonly content: string | readonly ContentBlock[];
    };

/** A prompt that users of clients choose, for example as a slash command. */
export interface McpPrompt {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** Default: none. */
  readonly arguments?: readonly McpPromptArgument[];
  /** Returns or emits the messages: a string is one of the user. Arguments that are not required may be missing. */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly get: (
    args: Readonly<Record<string, string>>,
    request: McpRequest,
  ) => Given<string | readonly McpPromptMessage[]>;
}

export const listedPrompt = ({
  name,
  title,
  description,
  arguments: args = [],
}: McpPrompt): Prompt => ({
  name,
  ...defined({ title, description }),
  ...(args.length > 0 && {
    arguments: args.map(({ name: it, description: about, required }) => ({
      name: it,
      ...defined({ description: about, required }),
    })),
  }),
});

/** Emits the messages of a prompt. Throws for clients if it does not exist, or an argument is missing. */
export const messagesOf$ = (
  prompts: readonly McpPrompt[],
  name: string,
  given: Readonly<Record<string, string>>,
  request: McpRequest,
  most: number,
): Observable<GetPromptResult> => {
  const prompt = prompts.find((it) => it.name === name);
  if (prompt === undefined) throw refusal(`There is no prompt '${name.slice(0, 128)}'.`);
  const { description, arguments: declared = [] } = prompt;
  const missing = declared.find((it) => it.required === true && !Object.hasOwn(given, it.name));
  if (missing !== undefined) {
    throw refusal(`The prompt '${name}' needs the argument '${missing.name}'.`);
  }
  const known = declared.flatMap(({ name: it }) => {
    const value = Object.hasOwn(given, it) ? given[it] : undefined;
    return value === undefined ? [] : [[it, value] as const];
  });
  const misshapen = () =>
    new MillraceError(
      'invalidResponse',
      `The prompt '${name}': 'get' must return or emit a string or a list of messages.`,
    );
  return given$(() => prompt.get(Object.fromEntries(known), request), misshapen).pipe(
    map((messages) => {
      const list = typeof messages === 'string' ? [messages] : messages;
      if (!Array.isArray(list)) throw misshapen();
      const blocks = list.flatMap((message) => blocksOf(message, misshapen));
      if (lengthOfAll(blocks.map(({ block }) => block)) > most) throw tooLong(name, most);
      return {
        ...(description !== undefined && { description }),
        messages: blocks.map(({ role, block }) => ({ role, content: blockOf(block) })),
      };
    }),
  );
};

interface PromptBlock {
  readonly role: 'user' | 'assistant';
  readonly block: ContentBlock;
}

/** A message of the protocol has one block each. */
const blocksOf = (message: unknown, misshapen: () => Error): readonly PromptBlock[] => {
  if (typeof message === 'string') return [{ role: 'user', block: textBlock(message) }];
  if (!isRecord(message)) throw misshapen();
  const { role, content } = message;
  if (role !== 'user' && role !== 'assistant') throw misshapen();
  if (typeof content === 'string') return [{ role, block: textBlock(content) }];
  if (!isBlocks(content)) throw misshapen();
  return content.map((block) => ({ role, block }));
};

const isBlocks = (content: unknown): content is readonly ContentBlock[] =>
  Array.isArray(content) && content.every((it) => isRecord(it) && typeof it['type'] === 'string');

export const checkPrompts = (prompts: readonly McpPrompt[]): readonly McpPrompt[] => {
  const wrong = prompts.find(
    (it) =>
      !isRecord(it) ||
      typeof it.name !== 'string' ||
      it.name === '' ||
      typeof it.get !== 'function',
  );
  if (wrong !== undefined) {
    throw new MillraceError('config', "A prompt is { name, get }, optionally with 'arguments'.");
  }
  const twice = prompts.find((it, at) => prompts.findIndex(({ name }) => name === it.name) !== at);
  if (twice !== undefined) {
    throw new MillraceError('config', `Two prompts are named '${twice.name}'.`);
  }
  return prompts;
};

const refusal = (text: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, text);

const tooLong = (name: string, most: number): MillraceError => {
  const userMessage = `The messages of the prompt are longer than ${most} characters.`;
  return new MillraceError(
    'tooLarge',
    `The messages of the prompt '${name}' are longer than ${most} characters: raise limits.result.`,
    { userMessage },
  );
};
