import { textOf, type ToolResultBlock } from '@millrace/core';
import { plainJson } from './plain-json.js';

/** What a reader gets as a tool's output: its `details` where it has some, else its text, else its blocks. */
export const outputOf = ({ details, content }: ToolResultBlock): unknown => {
  if (details !== undefined) return plainJson(details);
  return content.every(({ type }) => type === 'text') ? textOf({ content }) : plainJson(content);
};

/** What is said of a use of a tool that was not allowed. */
export const denied = 'This use of the tool was denied.';

/** What is said of a use of a tool that nobody has answered. */
export const notRun = 'The tool was not run.';
