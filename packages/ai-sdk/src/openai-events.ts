import type { ModelChunk } from 'millrace';
import { parsedJson } from 'millrace/values';
import { at, listAt, textAt } from '@millrace/wire';

/** The text of a refusal in a delta of chat completions, or in a whole message of the Responses API. Packages drop it. */
export const refusalIn = (event: unknown): string =>
  textAt(event, 'type') === 'response.output_item.done'
    ? listAt(event, 'item', 'content')
        .map((it) => textAt(it, 'refusal'))
        .join('')
    : textAt(listAt(event, 'choices')[0], 'delta', 'refusal');

/**
 * The end of an answer with a tool call that the vendor could not parse, which Groq reports as the error `tool_use_failed`: the model
 * is asked to write it again. Any other error has no chunks.
 */
export const unparsedCall = (error: unknown): readonly ModelChunk[] => {
  // A package parses only the fields of a body that it knows.
  const body = parsedJson(textAt(error, 'responseBody'));
  const fault = [error, at(error, 'value'), body]
    .flatMap((it) => [it, at(it, 'error')])
    .find((it) => textAt(it, 'code') === 'tool_use_failed');
  if (fault === undefined) return [];
  const written = textAt(fault, 'failed_generation').trim().slice(0, 500);
  const feedback = `Your tool call could not be parsed${written === '' ? '' : ` (${written})`}. Call an available tool with JSON arguments, or answer with text.`;
  return [
    { type: 'malformed', feedback },
    { type: 'finish', finish: 'stop' },
  ];
};
