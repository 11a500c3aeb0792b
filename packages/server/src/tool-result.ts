import { textOf, type ToolResultBlock } from '@millrace/core';
import { parsedJson } from '@millrace/core/adapter';
import { plainJson } from './plain-json.js';

/**
 * What a reader gets as a tool's output: its `details` where it has some, else its text, else its blocks. A text that is the
 * JSON of an object or a list was one when the tool made it, and is one again.
 */
export const outputOf = ({ details, content }: ToolResultBlock): unknown => {
  if (details !== undefined) return plainJson(details);
  if (!content.every(({ type }) => type === 'text')) return plainJson(content);
  const text = textOf({ content });
  const value = parsedJson(text);
  return typeof value === 'object' && value !== null ? plainJson(value) : text;
};

/** What is said of a use of a tool that was not allowed. */
export const denied = 'This use of the tool was denied.';

/** What is said of a use of a tool that nobody has answered. */
export const notRun = 'The tool was not run.';
