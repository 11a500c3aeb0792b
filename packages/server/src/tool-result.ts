import { textOf, type ToolResultBlock } from 'millrace';
import { parsedJson } from 'millrace/values';
import { plainJson } from './plain-json.js';

/**
 * The output of a tool for the client: its `details` if present, else its text, or its blocks if they are not all text.
 * Text that is a JSON object or array is parsed, as the tool returned an object or array.
 */
export const outputOf = ({ details, content }: ToolResultBlock): unknown => {
  if (details !== undefined) return plainJson(details);
  if (!content.every(({ type }) => type === 'text')) return plainJson(content);
  const text = textOf({ content });
  const value = parsedJson(text);
  return typeof value === 'object' && value !== null ? plainJson(value) : text;
};

export const denied = 'This tool call was denied.';

export const notRun = 'The tool was not run.';
