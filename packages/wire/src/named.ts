import type { ContentBlock, UserMessage } from '@millrace/core';

/** Gives what a user says, the name before it: for a wire that has no field for it. */
export const named = ({ name, content }: UserMessage): readonly ContentBlock[] => {
  if (name === undefined || name === '') return content;
  const [first, ...rest] = content;
  return first?.type === 'text'
    ? [{ type: 'text', text: `${name}: ${first.text}` }, ...rest]
    : [{ type: 'text', text: `${name}:` }, ...content];
};
