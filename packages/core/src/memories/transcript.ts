import { cutObservation } from '../tool-output.js';
import {
  type AssistantBlock,
  type ContentBlock,
  type Message,
  textBlock,
  textOf,
  type ToolMessage,
  type ToolUseBlock,
} from '../message.js';
import { usesIn } from '../tools/suspend.js';

/** Characters of one text, of one input or of one result: what is longer is cut, with a marker. */
const most = 4_000;

/**
 * Writes messages down, an entry each, for a model to read about them; results stand with the message that asked for them. Headings stand at the
 * beginning of a line and nothing else does, so that no text can pass for another's. What was thought is left out.
 */
export const transcriptOf = (messages: readonly Message[]): readonly string[] => {
  const uses = usesIn(messages);
  return messages.flatMap((message, index): readonly string[] => {
    const next = messages[index + 1];
    switch (message.role) {
      case 'user':
        return [entry(who('user', message.name), written(message.content))];
      case 'assistant': {
        const blocks = message.content.map((block) => said(block, message.name));
        return [[...blocks, ...(next?.role === 'tool' ? given(next, uses) : [])].join('')];
      }
      case 'tool':
        return messages[index - 1]?.role === 'assistant' ? [] : [given(message, uses).join('')];
    }
  });
};

const given = (
  { content: results }: ToolMessage,
  uses: ReadonlyMap<string, ToolUseBlock>,
): readonly string[] =>
  results.map(({ toolUseId, content, isError }) => {
    const name = uses.get(toolUseId)?.name ?? 'a tool';
    return entry(`${isError ? 'error' : 'result'} of ${inOneLine(name)}`, written(content));
  });

/** A heading, with a text that stands in from the margin. */
export const entry = (heading: string, text: string): string =>
  `${heading}:\n${text
    .split(lineBreak)
    .map((line) => `  ${line}`)
    .join('\n')}\n`;

const lineBreak = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/u;

const inOneLine = (name: string): string => name.split(lineBreak).join(' ');

const who = (role: string, name: string | undefined): string =>
  name === undefined || name === '' ? role : `${role} (${inOneLine(name)})`;

const said = (block: AssistantBlock, name: string | undefined): string => {
  switch (block.type) {
    case 'thinking':
      return '';
    case 'tool_use': {
      const input = cut([textBlock(JSON.stringify(block.input))]);
      return entry(`${who('assistant', name)} uses ${inOneLine(block.name)}`, input);
    }
    default:
      return entry(who('assistant', name), written([block]));
  }
};

const written = (content: readonly ContentBlock[]): string =>
  cut(content.map((block) => (block.type === 'text' ? block : textBlock(`[${block.type}]`))));

const cut = (content: readonly ContentBlock[]): string =>
  textOf({ content: cutObservation(content, most) });
